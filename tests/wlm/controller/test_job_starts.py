"""Tests of start messages: environment, files, tasks."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.bindings import NodeBinding
from fairbank.wlm.controller.job_files import shown_files
from fairbank.wlm.controller.nodes.job_environment import (
    run_lengths,
    submission_environment,
    tasks_by_node,
)
from fairbank.wlm.controller.nodes.job_start import StartDetails, bound_cpus, start_message
from fairbank.wlm.controller.nodes.node_requests import limit_request
from fairbank.wlm.core.effects import ChangeLimit, StartRun
from fairbank.wlm.core.jobs import Moment, NodeGrant, RunAllocation, Submission, WlmRun
from fairbank.wlm.protocol.messages import StartJob


def grants(*cpus: int) -> tuple[NodeGrant, ...]:
    """Return what a run has of the nodes n1, n2 and so on."""
    return tuple(
        NodeGrant(NodeBinding(f"n{at}", tuple(range(count))), count, 100)
        for at, count in enumerate(cpus, 1)
    )


def start(
    *cpus: int,
    wanted: ResourceRequest = ResourceRequest(),
    node: str = "n1",
    restart: int = 0,
    details: Any = None,
    job: Any = None,
    **submission: Any,
) -> StartJob:
    """Return the start message of a run with so many CPUs on each node."""
    facts: dict[str, Any] = {"name": "train", "uid": 7, "gid": 8, "script": "x", "directory": "/w"}
    request: dict[str, Any] = {"number": 42, "user": "alice", "account": "bio", "qos": "normal"}
    run = WlmRun(
        run=Run("lab", 42, 1_000, restart),
        allocation=RunAllocation("main", grants(*cpus)),
        allocated=Moment(1_000, 10),
    )
    effect = StartRun(
        run, PendingJob(**(request | (job or {}))), Submission(**(facts | submission)), 600
    )
    given: dict[str, Any] = {"script": b"#!/bin/sh\n", "environment": b"A=1\0B=2", "now": 1_010}
    return start_message(
        effect, node, StartDetails(**(given | {"wanted": wanted} | (details or {})))
    )


def variables(message: StartJob) -> dict[str, str]:
    return dict(entry.decode().split("=", 1) for entry in message.environment)


def test_job_without_account_and_qos_has_the_default_qos_and_no_account() -> None:
    shown = variables(start(1, job={"account": "", "qos": ""}))
    assert shown["SLURM_JOB_QOS"] == "normal"
    assert "SLURM_JOB_ACCOUNT" not in shown


def test_variables_of_a_job_are_those_of_slurm() -> None:
    wanted = ResourceRequest(nodes=2, tasks=6, memory_per_cpu=50)
    message = start(4, 2, wanted=wanted, job={"limit": 600, "licenses": {"matlab": 2}})
    assert variables(message) == {
        "A": "1",
        "B": "2",
        "ENVIRONMENT": "BATCH",
        "SLURM_CLUSTER_NAME": "lab",
        "SLURM_JOB_ID": "42",
        "SLURM_JOBID": "42",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_ACCOUNT": "bio",
        "SLURM_JOB_QOS": "normal",
        "SLURM_JOB_PARTITION": "main",
        "SLURM_JOB_USER": "alice",
        "SLURM_JOB_UID": "7",
        "SLURM_JOB_GID": "8",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_NODELIST": "n[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_NNODES": "2",
        "SLURM_JOB_CPUS_PER_NODE": "4,2",
        "SLURM_TASKS_PER_NODE": "4,2",
        "SLURM_NTASKS": "6",
        "SLURM_NPROCS": "6",
        "SLURM_CPUS_ON_NODE": "4",
        "SLURM_MEM_PER_CPU": "50",
        "SLURM_JOB_START_TIME": "1010",
        "SLURM_JOB_END_TIME": "1610",
        "SLURM_OOM_KILL_STEP": "0",
        "SLURM_JOB_LICENSES": "matlab:2",
    }


def test_only_a_restarted_run_has_a_restart_count() -> None:
    assert "SLURM_RESTART_COUNT" not in variables(start(1))
    assert variables(start(1, restart=2))["SLURM_RESTART_COUNT"] == "2"


def test_array_variables_count_all_tasks() -> None:
    job = {"number": 45, "array": 42, "task": 5}
    message = start(1, job=job, details={"array_tasks": [1, 3, 5, 7]})
    array = {name: value for name, value in variables(message).items() if "ARRAY" in name}
    assert array == {
        "SLURM_ARRAY_JOB_ID": "42",
        "SLURM_ARRAY_TASK_ID": "5",
        "SLURM_ARRAY_TASK_COUNT": "4",
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": "7",
        "SLURM_ARRAY_TASK_STEP": "2",
    }
    assert message.output == "/w/slurm-42_5.out"


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("", "/w/slurm-42.out"),
        ("%x-%4j.txt", "/w/train-0042.txt"),
        ("/tmp/%u/%N.%A.%a", "/tmp/alice/n1.42.4294967294"),
        (r"a\%j", "/w/a%j"),
    ],
    ids=["default", "name and width", "array of none", "backslash"],
)
def test_output_pattern_is_expanded(pattern: str, path: str) -> None:
    assert start(1, output=pattern).output == path


@pytest.mark.parametrize("pattern", ["", "%x-%4j", "%A_%a", "%N.%b"])
@pytest.mark.parametrize(("array", "task"), [(None, -1), (42, 13)], ids=["job", "task"])
def test_shown_output_is_the_file_that_is_written(
    pattern: str, array: int | None, task: int
) -> None:
    request = PendingJob(number=45, user="alice", array=array, task=task)
    submission = Submission(name="train", uid=7, gid=8, script="x", directory="/w", output=pattern)
    grant = NodeGrant(NodeBinding("n1.example.org", (0,)), 1, 100)
    run = WlmRun(
        run=Run("lab", 45, 1_000),
        allocation=RunAllocation("main", (grant,)),
        allocated=Moment(1_000, 10),
    )
    details = StartDetails(b"#!/bin/sh\n", b"", ResourceRequest())
    message = start_message(StartRun(run, request, submission, 600), "n1.example.org", details)
    assert shown_files(request, submission, "n1.example.org").output == message.output


def test_files_have_the_defaults_of_sbatch() -> None:
    message = start(1)
    assert (message.input, message.error, message.append) == ("/dev/null", "", False)
    assert start(1, details={"appends": True}).append
    assert not start(1, details={"appends": True}, open_mode="truncate").append
    assert start(1, open_mode="append").append


def test_only_the_first_node_runs_the_script() -> None:
    message = start(1, 1, node="n2", output="/w/out")
    assert (message.script, message.arguments[0]) == (b"", "/bin/sleep")
    assert message.output == "/dev/null"
    assert message.seconds == 600


@pytest.mark.parametrize(
    ("counts", "text"),
    [([4], "4"), ([72, 72, 36], "72(x2),36"), ([1, 2, 1], "1,2,1")],
    ids=["one", "repeated", "alternating"],
)
def test_counts_by_node_are_written_as_runs(counts: list[int], text: str) -> None:
    assert run_lengths(counts) == text


@pytest.mark.parametrize(
    ("wanted", "cpus", "tasks"),
    [
        (ResourceRequest(cpus_per_task=2), (4, 2), [2, 1]),
        (ResourceRequest(nodes=2, tasks=3), (4, 4), [2, 1]),
        (ResourceRequest(nodes=2, tasks=5, tasks_per_node=3), (8, 2), [3, 2]),
        (ResourceRequest(nodes=1, tasks=4), (1,), [4]),
    ],
    ids=["by CPUs", "round the nodes", "at most a number each", "overcommitted"],
)
def test_tasks_go_round_the_nodes(
    wanted: ResourceRequest, cpus: tuple[int, ...], tasks: list[int]
) -> None:
    assert tasks_by_node(wanted, grants(*cpus)) == tasks


@pytest.mark.parametrize(
    ("node", "cores", "cpus"),
    [("n1", (1,), (1, 5)), ("n2", (0, 1), (2, 6, 3, 7)), ("n3", (0,), ())],
    ids=["second core", "next node", "host with too few"],
)
def test_run_is_bound_to_the_cores_of_its_node(
    node: str, cores: tuple[int, ...], cpus: tuple[int, ...]
) -> None:
    nodes = [Node(name=name, cpus=4, threads=2) for name in ("n1", "n2", "n3")]
    grant = NodeGrant(NodeBinding(node, cores), 2 * len(cores), 100)
    run = WlmRun(
        run=Run("lab", 42, 1_000),
        allocation=RunAllocation("main", (grant,)),
        allocated=Moment(1_000, 10),
    )
    facts = Submission(name="train", uid=7, gid=8, script="x")
    effect = StartRun(run, PendingJob(number=42), facts, None)
    assert bound_cpus(effect, nodes, (0, 4, 1, 5, 2, 6, 3, 7)) == cpus


def test_submission_within_a_job_leaves_out_its_variables() -> None:
    outer = (
        b"HOME=/h\0SLURM_JOB_ID=7\0SLURM_ARRAY_TASK_ID=3\0SLURM_CONF=/etc/x\0SLURM_CPUS_PER_TASK=9"
    )
    options = {"dependency": "afterok:7", "cpus-per-task": "2"}
    assert submission_environment(outer, options, "/w", "login").split(b"\0") == [
        b"HOME=/h",
        b"SLURM_CONF=/etc/x",
        b"SLURM_SUBMIT_DIR=/w",
        b"SLURM_SUBMIT_HOST=login",
        b"SLURM_CPUS_PER_TASK=2",
        b"SLURM_JOB_DEPENDENCY=afterok:7",
    ]


@pytest.mark.parametrize(
    ("limit", "started", "left"), [(600, 40, 540), (600, None, 600), (50, 40, 0), (None, 40, None)]
)
def test_limit_is_what_is_left_when_it_is_sent(
    limit: int | None, started: int | None, left: int | None
) -> None:
    assert limit_request(ChangeLimit(Run("lab", 1, 1), limit, started), now=100).seconds == left
