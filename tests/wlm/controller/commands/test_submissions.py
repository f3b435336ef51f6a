"""Submissions: each option becomes what the core takes, and bad ones are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.node import Gpus
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import FairbankError, InvalidInput, NotFound
from fairbank.core.submission.options import OPTIONS
from fairbank.priority.fairshare.tree import ShareAssociation
from fairbank.priority.limits.usage import QosLimits
from fairbank.wlm.controller.commands.job_changes import ChangeContext, job_update
from fairbank.wlm.controller.commands.submissions import StoredFiles, Submitter, build_submission
from fairbank.wlm.core.events import SubmitJob
from fairbank.wlm.core.requests.submission import JobAccepted
from fairbank.wlm.protocol.commands import SubmitRequest
from tests.wlm.core.world import ALICE, START, World, named

REQUEST = SubmitRequest(
    version=1, script=b"#!/bin/sh\n", directory="/home/alice", script_name="bin/train.sh"
)
SUBMITTER = Submitter(ALICE, 100, ("users",))


def world() -> World:
    return World(
        PartitionRules(name="main", is_default=True, max_seconds=7_200, default_seconds=60),
        PartitionRules(name="long"),
        qos={"high": QosLimits(name="high")},
        shares=(ShareAssociation("physics", "alice"),),
        allowed_qos={("physics", "alice", ""): ("normal", "high")},
        licenses={"matlab": 2},
    )


WORLD = world()


def build(options: Mapping[str, str], lab: World | None = None, **fields: Any) -> SubmitJob:
    request = msgspec.structs.replace(REQUEST, options=dict(options), **fields)
    files = StoredFiles("script", "environment")
    state = (lab or world()).core.state
    return build_submission(request, SUBMITTER, files, state, START.wall)


@pytest.mark.parametrize(
    ("options", "part", "expected"),
    [
        ({"nodes": "2"}, "wanted", {"nodes": 2, "max_nodes": 2, "tasks": None}),
        ({"nodes": "2-4"}, "wanted", {"nodes": 2, "max_nodes": 4}),
        ({}, "wanted", {"nodes": 1, "max_nodes": None, "memory_per_node": None}),
        ({"ntasks": "2", "nodes": "4"}, "wanted", {"nodes": 2, "max_nodes": 2, "tasks": 2}),
        ({"ntasks": "5", "ntasks-per-node": "2"}, "wanted", {"nodes": 3, "tasks_per_node": 2}),
        ({"nodes": "2", "ntasks-per-node": "3"}, "wanted", {"tasks": 6, "tasks_per_node": 3}),
        ({"ntasks": "8", "overcommit": ""}, "wanted", {"tasks": None, "nodes": 1}),
        ({"mem": "4G"}, "wanted", {"memory_per_node": 4_096, "memory_per_cpu": None}),
        ({"mem": "0"}, "wanted", {"memory_per_node": 0}),
        ({"mem-per-cpu": "2G"}, "wanted", {"memory_per_cpu": 2_048, "memory_per_node": None}),
        ({"mem-per-cpu": "0"}, "wanted", {"memory_per_cpu": None, "memory_per_node": 0}),
        (
            {"cpus-per-task": "3", "mincpus": "4"},
            "wanted",
            {"cpus_per_task": 3, "cpus_per_node": 4},
        ),
        ({"nodelist": "n[0-1]", "exclude": "n2"}, "wanted", {"required": ("n0", "n1")}),
        ({"exclusive": ""}, "error", "--exclusive"),
        ({"exclusive": "exclusive"}, "wanted", {"exclusive": True, "shared": False}),
        ({"exclusive": "user"}, "wanted", {"exclusive": False, "shared": False}),
        ({"exclusive": "topo"}, "error", "--exclusive"),
        ({"oversubscribe": ""}, "wanted", {"shared": True}),
        (
            {"constraint": "a&b", "tmp": "5", "contiguous": ""},
            "wanted",
            {"constraint": "a&b", "tmp": 5},
        ),
        ({"constraint": "a&"}, "error", "--constraint"),
        (
            {},
            "job",
            {"partitions": ("",), "account": "physics", "limit": None, "groups": ("users",)},
        ),
        (
            {"account": "chem", "partition": "long,main"},
            "job",
            {"account": "chem", "partitions": ("long", "main")},
        ),
        ({"time": "10", "time-min": "5"}, "job", {"limit": 600, "time_min": 300}),
        ({"time": "UNLIMITED"}, "job", {"limit": 10 * 366 * 86_400}),
        ({"time": "0", "partition": "long"}, "job", {"limit": 10 * 366 * 86_400}),
        ({"begin": "now+1hour"}, "job", {"eligible": START.wall + 3_600}),
        ({"deadline": "now+1hour"}, "job", {"deadline": START.wall + 3_600}),
        ({"deadline": "2001-01-01"}, "error", "--deadline"),
        ({"deadline": "now+1hour", "time": "60"}, "job", {"deadline": START.wall + 3_600}),
        ({"deadline": "now+1hour", "time": "61"}, "error", "--deadline"),
        ({"deadline": "now+1hour", "begin": "now+2hours"}, "error", "--deadline"),
        (
            {"deadline": "now+1hour", "begin": "now+30minutes", "time-min": "31", "time": "40"},
            "error",
            "--time-min",
        ),
        ({"begin": "sometime"}, "error", "--begin"),
        ({"qos": "high"}, "job", {"qos": "high"}),
        ({}, "job", {"qos": "normal"}),
        ({"account": "chem"}, "job", {"qos": ""}),
        ({"qos": "low"}, "error", "--qos"),
        ({"licenses": "matlab:2"}, "job", {"licenses": {"matlab": 2}}),
        ({"licenses": "matlab:3"}, "error", "--licenses"),
        ({"licenses": "matlab@server"}, "error", "--licenses"),
        ({"clusters": "lab"}, "job", {}),
        ({"clusters": "other"}, "error", "--clusters"),
        ({}, "submission", {"name": "train.sh", "gid": 100, "command": "/home/alice/bin/train.sh"}),
        (
            {"job-name": "x", "chdir": "runs"},
            "submission",
            {"name": "x", "directory": "/home/alice/runs"},
        ),
        ({"chdir": "/data"}, "submission", {"directory": "/data", "may_requeue": True}),
        ({"no-requeue": ""}, "submission", {"may_requeue": False}),
        (
            {"no-kill": "set", "kill-on-invalid-dep": "yes"},
            "submission",
            {"no_kill": True, "kill_invalid": True},
        ),
        ({"signal": "B:USR1@300"}, "submission", {"warning": (10, 300, True, False)}),
        (
            {"output": "%x.out", "open-mode": "a"},
            "submission",
            {"output": "%x.out", "open_mode": "append"},
        ),
        ({"output": "%x.out", "job-name": "a/b"}, "error", "--output"),
        (
            {"nice": "100", "comment": "c", "wckey": "w"},
            "submission",
            {"nice": 100, "comment": "c", "wckey": "w"},
        ),
        (
            {"mail-type": "END", "mail-user": "a@b"},
            "submission",
            {"mail_types": {"END"}, "mail_user": "a@b"},
        ),
        ({"propagate": "NONE"}, "submission", {"limits": {}}),
        ({"propagate": "CORE"}, "submission", {"limits": {"CORE": -1}}),
        ({}, "submission", {"limits": {"CORE": -1, "NOFILE": 9}}),
        ({"hold": ""}, "request", {"held": True}),
        ({"priority": "0"}, "request", {"held": False}),
        ({"array": ""}, "request", {"array": None}),
        ({"ntasks-per-node": "3", "nodes": "2"}, "wanted", {"tasks": 6, "cpus_per_node": 3}),
        ({"ntasks-per-node": "3", "ntasks": "4"}, "wanted", {"nodes": 2, "cpus_per_node": 1}),
        ({"ntasks-per-node": "3", "cpus-per-task": "2"}, "wanted", {"cpus_per_node": 6}),
        ({"nodelist": "n[0-1]"}, "wanted", {"nodes": 2, "max_nodes": None}),
        ({"nodelist": "n[0-1]", "ntasks": "1"}, "wanted", {"max_nodes": 1, "required": ("n0",)}),
        ({"test-only": ""}, "request", {"test_only": True}),
        ({"gres": "gpu:1"}, "wanted", {"gpus": (Gpus("", 1),), "total_gpus": None}),
        ({"gpus": "a100:2"}, "wanted", {"gpus": (), "total_gpus": Gpus("a100", 2)}),
        (
            {"gpus-per-task": "1", "ntasks": "3"},
            "wanted",
            {"tasks": 3, "gpus_per_task": (Gpus("", 1),)},
        ),
        ({"gpus": "4", "gpus-per-task": "2"}, "wanted", {"tasks": 2, "total_gpus": None}),
        ({"gpus": "4", "gpus-per-node": "2"}, "wanted", {"nodes": 2, "gpus": (Gpus("", 2),)}),
        ({"gpu-bind": "closest"}, "submission", {"gpu_binding": "closest"}),
        ({"gpu-bind": "near"}, "error", "--gpu-bind"),
        (
            {"gpus": "a100:4", "ntasks-per-gpu": "2"},
            "wanted",
            {
                "tasks": 8,
                "gpus_per_task": (Gpus("a100", 1),),
                "tasks_per_gpu": 2,
                "total_gpus": None,
                "gpu_count": 4,
            },
        ),
        (
            {"gpus-per-node": "2", "nodes": "2", "ntasks-per-gpu": "3"},
            "wanted",
            {"tasks": 12, "tasks_per_node": 6, "gpus": (Gpus("", 2),), "gpu_count": 4},
        ),
        (
            {"ntasks": "6", "ntasks-per-gpu": "3"},
            "wanted",
            {"tasks": 6, "gpus_per_task": (Gpus("", 1),), "gpu_count": 2},
        ),
        (
            {"gpus": "2", "cpus-per-gpu": "4", "mem-per-gpu": "100M"},
            "wanted",
            {"cpus_per_gpu": 4, "memory_per_gpu": 100, "cpus": 8},
        ),
        (
            {"gpus-per-task": "2", "ntasks": "3", "cpus-per-gpu": "2"},
            "wanted",
            {"cpus_per_task": 4, "cpus": 12},
        ),
        ({"gpus": "2", "mem-per-gpu": "1", "mem": "1"}, "error", "memory_per_gpu"),
        ({"gres": "none"}, "wanted", {"gpus": ()}),
        ({"uid": "1"}, "error", "--uid"),
        ({"switches": "1"}, "error", "--switches"),
        ({"profile": "all", "hint": "compute_bound"}, "request", {}),
        ({"nodefile": "./nodes"}, "error", "--nodefile"),
        ({"bake": ""}, "error", "--bake"),
        ({"ntasks": "0"}, "error", "--ntasks"),
        ({"nodes": "1", "nodelist": "n0,n1"}, "error", "required"),
        ({"mem": "1G", "mem-per-cpu": "1G"}, "error", "memory_per_cpu"),
    ],
    ids=lambda value: (
        ",".join(f"{name}={text}" for name, text in value.items())
        if isinstance(value, dict)
        else str(value)
    ),
)
def test_option_becomes_what_the_core_takes(
    options: dict[str, str], part: str, expected: Any
) -> None:
    limits = {"NOFILE": 9, "CORE": -1, "BAKE": 1}
    if part == "error":
        with pytest.raises(FairbankError) as refused:
            build(options, limits=limits)
        assert refused.value.field == expected
        return
    built = build(options, limits=limits)
    of: Any = {
        "request": built,
        "job": built.job,
        "wanted": built.job.wanted,
        "submission": built.submission,
    }[part]
    assert {name: getattr(of, name) for name in expected} == expected


def test_normal_is_the_qos_of_a_cluster_without_any() -> None:
    lab = World()
    assert build({"qos": "normal"}, lab).job.qos == ""
    for name, cluster in (("normal", world()), ("high", lab)):
        with pytest.raises(NotFound):
            build({"qos": name}, cluster)
    change = job_update(
        named(lab.submit()), {"QOS": "normal"}, ChangeContext(lab.job(1), lab.core.state, lab.now)
    )
    assert change.qos == ""


TEXTS = st.one_of(
    st.text(max_size=20),
    st.from_regex(r"[0-9nR@%:,\[\]*+&|_=-]{0,12}", fullmatch=True),
    st.sampled_from(["", "0", "-1", "now", "UNLIMITED", "n[0-1]", "afterok:1", "1-9:3%2", "\0"]),
)
NAMES = sorted(option.name for option in OPTIONS)


@given(st.dictionaries(st.sampled_from(NAMES), TEXTS, max_size=4))
def test_any_texts_of_options_are_read_or_refused(options: dict[str, str]) -> None:
    lab = WORLD.core.state
    request = msgspec.structs.replace(REQUEST, options=options)
    files = StoredFiles("script", "environment")
    with suppress(FairbankError):
        build_submission(request, SUBMITTER, files, lab, START.wall)


def test_settings_decide_where_no_option_does() -> None:
    lab = World(job_requeue=False, propagate_resource_limits_except=frozenset({"CORE"}))
    built = build({}, lab, limits={"CORE": -1, "NOFILE": 9}).submission
    assert (built.may_requeue, built.limits) == (False, {"NOFILE": 9})
    assert build({"requeue": ""}, lab).submission.may_requeue


@pytest.mark.parametrize(
    "fields",
    [{"arguments": ("a\0",)}, {"directory": "/a\0"}, {"options": {"output": "a\0"}}],
    ids=["argument", "directory", "option"],
)
def test_text_with_a_nul_character_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        build(fields.pop("options", {}), **fields)


def test_long_text_is_refused_and_a_long_list_is_read() -> None:
    with pytest.raises(InvalidInput, match="4,097 characters"):
        build({"comment": "x" * 4_097})
    nodes = ",".join(f"n{number}" for number in range(2_000))
    assert len(build({"exclude": nodes}).job.wanted.excluded) == 2_000


def test_name_of_a_job_without_a_script_file() -> None:
    assert build({"wrap": "hostname"}, script_name="").submission.name == "wrap"
    assert build({}, script_name="", command="srun").submission.name == "srun"


@pytest.mark.parametrize(
    "fields",
    [
        {"script": b""},
        {"script": b"echo\n"},
        {"script": b"#!/bin/sh\n\0"},
        {"script": b"#!/bin/sh\r\n"},
        {"script": b"#!" + b"x" * (4 << 20)},
        {"environment": b"A=" + b"x" * (128 << 10)},
        {"arguments": ("x" * 1_000,) * 2_200},
    ],
    ids=["empty", "no script", "binary", "DOS", "long script", "long variable", "many arguments"],
)
def test_script_that_cannot_run_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(FairbankError) as refused:
        build({}, **fields)
    assert refused.value.field == "script"


def test_core_accepts_the_request_and_lower_priority_of_nice() -> None:
    lab = world()
    first, nice = (
        lab.request(build({"time": "10", **options})) for options in ({}, {"nice": "50"})
    )
    assert isinstance(first, JobAccepted)
    before, after = (lab.job(answer.number).request.priority for answer in (first, nice))
    assert after == before - 1 - 50
    refused = lab.request(build({"nice": "-1"}))
    assert isinstance(refused, FairbankError)
    assert refused.field == "priority"
