"""Snapshot from the output of a live Slurm: pending reasons, running jobs with their nodes, limits
as jobs start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.cluster.dependency import Dependencies, Dependency
from fairbank.cluster.license import License
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import (
    AccessList,
    OverSubscribe,
    PartitionRules,
    PartitionState,
    PreemptMode,
)
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, LimitUsage
from fairbank.scheduling.machines.node_snapshot import apply_plan
from fairbank.scheduling.machines.nodes import PreemptBy
from fairbank.scheduling.machines.partition_access import partition_tests
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.explain.job_credit import job_credit, quote_requests
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.jobs import JobNodes, SlurmJob, read_jobs
from fairbank.slurm.parsers.limits import QosRecord
from fairbank.slurm.queue_snapshot.answers import COMMANDS, QueueAnswers, read_answers
from fairbank.slurm.queue_snapshot.settings import preemption
from fairbank.slurm.queue_snapshot.snapshot import LiveQueue, build_queue

QUEUE = Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue"
NOW = 1_000_000
ENFORCED = {
    "AccountingStorageEnforce": "associations,limits,qos",
    "SelectTypeParameters": "CR_CORE_MEMORY",
}
ROOT, BIO = LimitRecord(name="root"), LimitRecord(name="bio", parent="root")
AFTER = Dependencies("afterok:6(unfulfilled)", (Dependency(kind="afterok", job=6),))
ALICE = LimitRecord(name="bio", user="alice", parent="bio")


def job(number: int, **changes: Any) -> SlurmJob:
    defaults: dict[str, Any] = {
        "job_id": number, "name": f"job{number}", "state": "PENDING", "user": "alice",
        "account": "bio", "qos": "normal",
        "partitions": ("cpu",), "priority": 1_000 - number, "submitted": NOW - 60,
        "eligible": NOW - 60, "started": None, "ends": None,
        "expected": None, "limit": 3_600, "time_min": None, "reason": "None",
        "dependencies": Dependencies(), "reservation": None,
        "wanted": ResourceRequest(memory_per_node=1), "licenses": {}, "tres": {"cpu": 1, "node": 1},
    }  # fmt: skip
    return SlurmJob(**(defaults | changes))


def running(number: int, *nodes: str, **changes: Any) -> SlurmJob:
    defaults = {
        "state": "RUNNING",
        "started": NOW - 60,
        "ends": NOW + 600,
        "allocated": (JobNodes(nodes, 4, 1_000),),
    }
    return job(number, **(defaults | changes))


def live_queue(*jobs: SlurmJob, **changes: Any) -> LiveQueue:
    defaults: dict[str, Any] = {
        "now": NOW, "config": ENFORCED, "nodes": [Node(name=f"n{number}", cpus=4,
        memory=4_000) for number in (1, 2, 3)],
        "partitions": [PartitionRules(name="cpu")], "reservations": (), "jobs": jobs,
        "associations": (ROOT, BIO, ALICE),
    }  # fmt: skip
    return build_queue(QueueAnswers(**(defaults | changes)))


def states_of(queue: LiveQueue) -> dict[str, str]:
    """Return for each pending job, by squeue's name, the nodes where it starts or the pending
    reason.
    """
    plan = run_passes(queue.snapshot, queue.parameters, queue.now)
    starts = {
        start.job.name: queue.snapshot.machine.cluster.names(start.placement.nodes)
        for start in plan.starts
    }
    waits = {job.name: plan.reason(job.number) for job in queue.snapshot.queue.jobs()}
    return waits | starts


# --- recorded ---


def recorded() -> LiveQueue:
    answers, unreadable = read_answers(
        {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    )
    assert unreadable == ()
    return build_queue(answers)


def test_running_job_keeps_its_other_nodes_if_the_line_of_one_was_not_read() -> None:
    """Job 1 runs alone on c[01-03], and only c06 is idle in cpu."""
    texts = {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    texts["nodes"] = texts["nodes"].replace("CPUTot=64", "CPUTot=many", 1)
    answers, (line,) = read_answers(texts)
    queue = build_queue(answers)
    (first, *_) = sorted(queue.snapshot.running, key=lambda running: running.number)
    assert (line.entity, first.number) == ("c01", 1)
    assert queue.snapshot.machine.cluster.names(first.placement.nodes) == "c[02-03]"
    assert queue.notes == [
        "the nodes of running jobs whose lines were not read do not count here: job 1"
    ]


def test_running_job_stays_if_no_line_of_its_nodes_was_read() -> None:
    queue = live_queue(running(1, "lost"), job(2), unread_nodes=("lost",))
    assert [active.number for active in queue.snapshot.running] == [1]
    assert states_of(queue) == {"2": "n1"}
    assert queue.notes == [
        "the nodes of running jobs whose lines were not read do not count here: job 1"
    ]


def test_recorded_queue_has_the_reasons_of_squeue() -> None:
    rows = [line.split("|") for line in (QUEUE / "squeue.txt").read_text().splitlines()]
    theirs = {name: words.reason(reason) for name, state, reason, *_ in rows if state == "PENDING"}
    assert states_of(recorded()) == theirs
    assert len(theirs) > 10


def test_recorded_queue_has_the_starts_of_slurmctld() -> None:
    """The starts agree to the second, except for the first job, which slurmctld printed 44 s later.
    squeue prints the start of an array's last task.
    """
    queue = recorded()
    plan = run_passes(queue.snapshot, queue.parameters, queue.now)
    last = {
        queue.slurm_jobs[reservation.job.number].job_id: reservation.at
        for reservation in plan.reservations
    }
    theirs = {
        job.job_id: job.expected
        for job in queue.slurm_jobs.values()
        if job.is_pending and job.expected and job.reason != "BeginTime"
    }
    assert last.keys() == theirs.keys()
    assert {
        number: (theirs[number] or 0) - at for number, at in last.items() if at != theirs[number]
    } == {5: 44}


def test_nodes_of_finished_jobs_in_2205() -> None:
    queue = recorded()
    rows = [line.split("|") for line in (QUEUE / "squeue.txt").read_text().splitlines()]
    theirs = {name: nodes for name, state, _, nodes, _ in rows if state == "RUNNING"}
    names = queue.snapshot.machine.cluster.names
    assert {
        running_job.job.name: names(running_job.placement.nodes)
        for running_job in queue.snapshot.running
    } == theirs


# --- pending jobs ---


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"priority": 0, "reason": "JobHeldUser"}, "JobHeldUser"),
        ({"priority": 0, "reason": "Allocation_exhausted"}, "JobHeldAdmin"),
        ({"dependencies": AFTER, "reason": "Dependency"}, "Dependency"),
        ({"dependencies": AFTER, "reason": "DependencyNeverSatisfied"}, "DependencyNeverSatisfied"),
        ({"dependencies": AFTER, "reason": "None"}, "Dependency"),
        ({"dependencies": Dependencies("some day"), "reason": "None"}, "Dependency"),
        ({"reason": "InvalidQOS"}, "InvalidQOS"),
        ({"reason": "Resources"}, "n1"),
        ({"reason": "AssocGrpCpuLimit"}, "n1"),
        ({"eligible": NOW + 60, "reason": "None"}, "BeginTime"),
        ({"partitions": ("gone",)}, "PartitionConfig"),
    ],
)
def test_only_unpredictable_reasons_are_taken_over(changes: dict[str, Any], state: str) -> None:
    assert states_of(live_queue(job(7, **changes))) == {"7": state}


def test_array_tasks_are_separate_jobs() -> None:
    alone: dict[str, Any] = {"array": 7, "wanted": ResourceRequest(exclusive=True), "priority": 5}
    states = states_of(live_queue(job(7, tasks=(1, 2, 5), **alone), job(9, task=0, **alone)))
    assert states == {"7_0": "n1", "7_1": "n2", "7_2": "n3", "7_5": "Resources"}


def test_array_throttle_limits_running_tasks() -> None:
    states = states_of(
        live_queue(running(6, "n1", array=6, task=0), job(7, array=6, tasks=(1, 2, 3), throttle=2))
    )
    assert states == {"6_1": "n2", "6_2": "JobArrayTaskLimit", "6_3": "JobArrayTaskLimit"}


def test_job_with_unknown_resources_is_left_out_and_noted() -> None:
    queue = live_queue(running(6, "n1", allocated=()), running(8, "n9"))
    assert queue.snapshot.running == []
    assert queue.notes == [
        "job 6 is left out: scontrol does not show the allocation of job 6",
        "job 8 is left out: job 8 runs on n9, and there is no such node",
    ]


def test_memory_holds_no_job_if_it_is_not_counted() -> None:
    jobs = (
        running(6, "n1", "n2", "n3", allocated=(JobNodes(("n1", "n2", "n3"), 1, 4_000),)),
        job(7, wanted=ResourceRequest(memory_per_node=3_000)),
    )
    assert states_of(live_queue(*jobs)) == {"7": "Resources"}
    assert states_of(live_queue(*jobs, config={**ENFORCED, "SelectTypeParameters": "CR_CORE"})) == {
        "7": "n1"
    }
    assert states_of(live_queue(*jobs, config={"SelectType": "select/linear"})) == {
        "7": "Resources"
    }


# --- limits ---


def test_jobs_of_an_account_are_counted_as_they_start() -> None:
    bio = msgspec.structs.replace(BIO, limits=AssociationLimits(jobs={LimitKind.GRP_JOBS: 2}))
    queue = live_queue(
        running(6, "n1"),
        job(7),
        job(8),
        job(9, user="eve", account="else"),
        associations=(ROOT, bio, ALICE),
    )
    assert states_of(queue) == {"7": "n2", "8": "AssocGrpJobsLimit", "9": "n2"}


def test_node_of_an_account_counts_once() -> None:
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"node": 2}})
    )
    jobs = (
        running(6, "n1"),
        job(7, wanted=ResourceRequest(memory_per_node=1, required=("n2",))),
        job(8),
        job(9, wanted=ResourceRequest(required=("n3",))),
    )
    assert states_of(live_queue(*jobs, associations=(ROOT, bio, ALICE))) == {
        "7": "n2",
        "8": "n2",
        "9": "AssocGrpNodeLimit",
    }


def after_end(queue: LiveQueue, number: int, seconds: int = 60) -> LiveQueue:
    """Return the queue after this running job has ended."""
    (ended_job,) = [
        running_job for running_job in queue.snapshot.running if running_job.number == number
    ]
    queue.snapshot.end(ended_job)
    queue.snapshot.machine.limits.record_end(ended_job.job, ended_job.placement, seconds)
    return queue


def test_ended_job_frees_its_limits() -> None:
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(
            jobs={LimitKind.GRP_JOBS: 1}, tres={LimitKind.GRP_TRES: {"node": 1, "cpu": 1}}
        ),
    )
    jobs = running(6, "n1"), job(7, wanted=ResourceRequest(exclusive=False))
    assert states_of(live_queue(*jobs, associations=(ROOT, bio, ALICE))) == {
        "7": "AssocGrpJobsLimit"
    }
    assert states_of(after_end(live_queue(*jobs, associations=(ROOT, bio, ALICE)), 6)) == {
        "7": "n1"
    }


def test_node_counts_while_the_group_uses_it() -> None:
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"node": 1}})
    )
    allocated = (JobNodes(("n1",), 1, 1_000),)
    jobs = (
        running(5, "n1", allocated=allocated),
        running(6, "n1", allocated=allocated),
        job(7, wanted=ResourceRequest(exclusive=True)),
    )
    queue = after_end(live_queue(*jobs, associations=(ROOT, bio, ALICE)), 5)
    assert states_of(queue) == {"7": "AssocGrpNodeLimit"}
    assert states_of(after_end(queue, 6)) == {"7": "n1"}


@pytest.mark.parametrize(("seconds", "state"), [(300, "n1"), (540, "AssocGrpCPUMinutesLimit")])
def test_used_minutes_stay_used(seconds: int, state: str) -> None:
    """The new job needs 60 of 70 CPU minutes. The other job had run one minute before; its unused
    time becomes free.
    """
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 70}}),
        used=LimitUsage(seconds={"cpu": 120.0}),
    )
    safe = {**ENFORCED, "AccountingStorageEnforce": "safe"}

    def make_queue() -> LiveQueue:
        return live_queue(
            running(6, "n1", ends=NOW + 600), job(7), associations=(ROOT, bio, ALICE), config=safe
        )

    assert states_of(make_queue()) == {"7": "AssocGrpCPUMinutesLimit"}
    assert states_of(after_end(make_queue(), 6, seconds)) == {"7": state}


def test_licenses_and_array_slots_are_returned() -> None:
    license = License("matlab", total=1, free=0)
    jobs = running(6, "n1", licenses={"matlab": 1}), job(7, licenses={"matlab": 1})
    assert states_of(live_queue(*jobs, licenses=(license,))) == {"7": "Licenses"}
    assert states_of(after_end(live_queue(*jobs, licenses=(license,)), 6)) == {"7": "n1"}
    jobs = running(6, "n1", array=6, task=0), job(7, array=6, tasks=(1, 2), throttle=1)
    assert states_of(live_queue(*jobs)) == {"6_1": "JobArrayTaskLimit", "6_2": "JobArrayTaskLimit"}
    assert sorted(states_of(after_end(live_queue(*jobs), 6)).values()) == [
        "JobArrayTaskLimit",
        "n1",
    ]


def test_limits_that_are_not_enforced_hold_no_job() -> None:
    bio = msgspec.structs.replace(BIO, limits=AssociationLimits(jobs={LimitKind.GRP_JOBS: 0}))
    assert states_of(live_queue(job(7), associations=(ROOT, bio, ALICE), config={})) == {"7": "n1"}


def test_used_tres_minutes_count() -> None:
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 10}}),
        used=LimitUsage(seconds={"cpu": 600.0}),
    )
    assert states_of(live_queue(job(7), associations=(ROOT, bio, ALICE))) == {
        "7": "AssocGrpCPUMinutesLimit"
    }


def test_partition_qos_takes_precedence() -> None:
    low = QosRecord(name="low", limits=AssociationLimits(jobs={LimitKind.MAX_JOBS_PER_USER: 1}))
    jobs = job(7, qos="low"), job(8, qos="low"), job(9, qos="low", user="bob"), job(10)
    assert states_of(live_queue(*jobs, qos=[low])) == {
        "7": "n1",
        "8": "QOSMaxJobsPerUserLimit",
        "9": "n1",
        "10": "n1",
    }
    cpu = PartitionRules(name="cpu", partition_qos="low")
    of_all = states_of(live_queue(*jobs, qos=[low], partitions=[cpu]))
    assert of_all == {
        "7": "n1",
        "8": "QOSMaxJobsPerUserLimit",
        "9": "n1",
        "10": "QOSMaxJobsPerUserLimit",
    }


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"accounts": AccessList(("chem",), "AccountNotAllowed")}, "AccountNotAllowed"),
        (
            {"accounts": AccessList(("bio", "chem"), "AccountNotAllowed", denies=True)},
            "AccountNotAllowed",
        ),
        ({"qos": AccessList(("high",), "QOSNotAllowed")}, "QOSNotAllowed"),
        ({"qos": AccessList(("normal",), "QOSNotAllowed", denies=True)}, "QOSNotAllowed"),
        ({"needs_reservation": True}, "PartitionConfig"),
        ({"max_cpus_per_node": 1}, "PartitionConfig"),
        ({"min_nodes": 3}, "PartitionNodeLimit"),
        ({"max_nodes": 1}, "PartitionNodeLimit"),
        ({"max_seconds": 1_800}, "PartitionTimeLimit"),
        ({"max_memory_per_node": 500}, "MaxMemPerLimit"),
        ({"state": PartitionState.DOWN}, "PartitionDown"),
        ({"state": PartitionState.INACTIVE}, "PartitionInactive"),
        (
            {
                "accounts": AccessList(("bio",), "AccountNotAllowed"),
                "qos": AccessList(("high",), "QOSNotAllowed", denies=True),
            },
            "n[1-2]",
        ),
        ({"state": PartitionState.DRAIN}, "n[1-2]"),
        ({"groups": AccessList(("admins",), "AccountNotAllowed")}, "AccountNotAllowed"),
        ({"groups": AccessList(("admins", "staff"), "AccountNotAllowed")}, "n[1-2]"),
    ],
)
def test_partition_that_does_not_accept_a_job_gives_its_reason(
    rules: dict[str, Any], reason: str
) -> None:
    """The job requests two nodes with 501 MiB each, and four CPUs, for an hour."""
    wanted = ResourceRequest(nodes=2, max_nodes=2, tasks=4, memory_per_node=501)
    recent = {**ENFORCED, "SLURM_VERSION": "24.11.5"}

    def state(**config: str) -> str:
        queue = live_queue(
            job(7, wanted=wanted),
            partitions=[PartitionRules(name="cpu", **rules)],
            config=recent | config,
            groups={"alice": ("staff", "users")},
        )
        return states_of(queue)["7"]

    access = reason.endswith("NotAllowed")
    assert state() == reason
    assert state(EnforcePartLimits="ALL") == ("PartitionConfig" if access else reason)
    of_groups = "PartitionConfig" if access and "groups" in rules else reason
    assert state(SLURM_VERSION="22.05.8") == of_groups


CLOSED = {"state": PartitionState.DOWN}


@pytest.mark.parametrize(
    ("rules", "enforced", "reason"),
    [
        (CLOSED | {"needs_reservation": True}, "NO", "PartitionConfig"),
        (CLOSED | {"max_cpus_per_node": 1}, "NO", "PartitionConfig"),
        (CLOSED | {"max_nodes": 1}, "NO", "PartitionDown"),
        (CLOSED | {"min_nodes": 3}, "NO", "PartitionDown"),
        (CLOSED | {"max_seconds": 1_800}, "NO", "PartitionDown"),
        (CLOSED | {"qos": AccessList(("high",), "QOSNotAllowed")}, "NO", "PartitionDown"),
        (CLOSED | {"qos": AccessList(("high",), "QOSNotAllowed")}, "ALL", "PartitionConfig"),
        ({"max_nodes": 1, "max_cpus_per_node": 1}, "NO", "PartitionConfig"),
        (
            {"max_nodes": 1, "qos": AccessList(("high",), "QOSNotAllowed")},
            "ALL",
            "PartitionNodeLimit",
        ),
        (
            {
                "accounts": AccessList(("chem",), "AccountNotAllowed"),
                "qos": AccessList(("high",), "QOSNotAllowed"),
            },
            "NO",
            "QOSNotAllowed",
        ),
    ],
)
def test_first_test_of_a_partition_that_fails_gives_the_reason(
    rules: dict[str, Any], enforced: str, reason: str
) -> None:
    """The job requests two nodes and four CPUs, for an hour."""
    queue = live_queue(
        job(7, wanted=ResourceRequest(nodes=2, max_nodes=2, tasks=4)),
        partitions=[PartitionRules(name="cpu", **rules)],
        config=ENFORCED | {"SLURM_VERSION": "24.11.5", "EnforcePartLimits": enforced},
    )
    assert states_of(queue) == {"7": reason}


def test_names_of_an_access_list_are_not_joined_in_a_pass() -> None:
    """A list may have hundreds, and a pass tests each job."""
    accounts = AccessList(("bio", "chem"), "AccountNotAllowed")
    queue = live_queue(job(7), partitions=[PartitionRules(name="cpu", accounts=accounts)])
    (pending,) = queue.snapshot.queue.jobs()
    tests = partition_tests(pending, queue.snapshot.machine.cluster, "cpu")
    allowed = next(test.allowed for test in tests if test.setting == "AllowAccounts")
    assert allowed == accounts.names


@pytest.mark.parametrize(
    ("release", "state"), [("22.05.8", "AccountNotAllowed"), ("23.02.0", "n1"), ("24.11.5", "n1")]
)
def test_accounts_below_an_allowed_one_are_accepted_since_23_02(release: str, state: str) -> None:
    partition = PartitionRules(name="cpu", accounts=AccessList(("bio",), "AccountNotAllowed"))
    lab = LimitRecord(name="lab", parent="bio")
    queue = live_queue(
        job(7, account="lab"),
        partitions=[partition],
        associations=(ROOT, BIO, lab),
        config={**ENFORCED, "SLURM_VERSION": release},
    )
    assert states_of(queue) == {"7": state}
    if release != "22.05.8":
        unenforced = live_queue(
            job(7, account="other"),
            partitions=[partition],
            config={"SLURM_VERSION": release, "AccountingStorageEnforce": "none"},
        )
        assert states_of(unenforced) == {"7": "n1"}


def test_request_above_the_node_limit_of_the_group_is_held_before_nodes_are_selected() -> None:
    """All nodes are busy, so that slurmctld selects none."""
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"node": 2}})
    )
    three = ResourceRequest(nodes=3, memory_per_node=1)
    jobs = (
        running(6, "n1", "n2", "n3", user="eve", account="else"),
        job(7, wanted=three, tres={"cpu": 3, "node": 3}),
    )
    queue = live_queue(*jobs, associations=(ROOT, bio, ALICE))
    assert states_of(queue) == {"7": "AssocGrpNodeLimit"}
    (waiting,) = queue.snapshot.queue.jobs()
    assert [
        str(check.figures) for check in queue.snapshot.machine.limits.checks(waiting, "cpu")
    ] == ["association of account bio allows 2 nodes (GrpTRES); this job asks for 3"]


@pytest.mark.parametrize(("limit", "state"), [(480, "n1"), (479, "AssocGrpBillingMinutes")])
def test_billing_is_computed_from_the_weights_of_the_partition(limit: int, state: str) -> None:
    """60 minutes with 2 CPUs of 3 units and 2 licenses of 1 unit; slurmctld printed no billing."""
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"billing": limit}})
    )
    weights = {"cpu": Fraction(3), "license/x": Fraction(1), "mem": Fraction(1, 10_000)}
    queue = live_queue(
        job(
            7,
            tres={"cpu": 2, "mem": 1, "node": 1, "license/x": 2},
            wanted=ResourceRequest(cpus_per_task=2, memory_per_node=1),
        ),
        partitions=[PartitionRules(name="cpu", weights=weights)],
        associations=(ROOT, bio, ALICE),
        config={**ENFORCED, "AccountingStorageEnforce": "safe"},
    )
    assert states_of(queue) == {"7": state}


def test_job_without_time_limit_counts_with_the_default_of_its_partition() -> None:
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES_RUN_MINS: {"cpu": 30}})
    )

    def state(seconds: int | None) -> str:
        partition = PartitionRules(name="cpu", default_seconds=seconds, max_seconds=3_600)
        jobs = job(7, limit=None)
        return states_of(live_queue(jobs, partitions=[partition], associations=(ROOT, bio, ALICE)))[
            "7"
        ]

    assert (state(1_800), state(1_860)) == ("n1", "AssocGrpCPURunMinutesLimit")
    assert state(None) == "AssocGrpCPURunMinutesLimit"


def test_job_waits_for_licenses() -> None:
    queue = live_queue(
        job(7, licenses={"x": 2}), job(8, licenses={"x": 2}), job(9), licenses=[License("x", 5, 3)]
    )
    assert states_of(queue) == {"7": "n1", "8": "Licenses", "9": "n1"}


def test_started_job_counts_in_the_next_pass() -> None:
    queue = live_queue(
        job(7, licenses={"x": 2}), job(8, licenses={"x": 2}), licenses=[License("x", 3, 3)]
    )
    plan = run_passes(queue.snapshot, queue.parameters, NOW)
    after = apply_plan(queue.snapshot, plan, NOW)
    assert [start.job.number for start in plan.starts] == [7]
    assert run_passes(after, queue.parameters, NOW).starts == []


# --- settings and choices ---


def test_preemption_settings_are_read() -> None:
    low, high = (
        QosRecord(name="low", priority=3, mode="CANCEL", exempt_seconds=60),
        QosRecord(name="high", preempts=frozenset({"low"})),
    )
    rules = preemption({"PreemptType": "preempt/qos", "PreemptMode": "GANG,REQUEUE"}, [low, high])
    assert (rules.by, rules.mode) == (PreemptBy.QOS, PreemptMode.REQUEUE)
    assert (rules.qos["high"].priority, rules.qos["high"].preempts) == (0, frozenset({"low"}))
    assert (
        rules.qos["low"].priority,
        rules.qos["low"].preempted,
        rules.qos["low"].exempt_seconds,
    ) == (3, PreemptMode.CANCEL, 60)
    assert (
        preemption({"PreemptType": "preempt/none", "PreemptMode": "OFF"}, []).by is PreemptBy.NONE
    )


def test_unknown_parameters_are_noted_and_ignored() -> None:
    queue = live_queue(
        config={"SchedulerParameters": "bf_interval=10,bf_window=0,something_new=3,bf_continue"}
    )
    assert (
        queue.parameters.bf_interval,
        queue.parameters.bf_window,
        queue.parameters.bf_continue,
    ) == (10, 1_440, True)
    assert [note.partition(",")[0] for note in queue.notes] == [
        "SchedulerParameters: 0 is not a bf_window",
        "SchedulerParameters: 'something_new' is not a parameter of the scheduler",
    ]


@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (
            {"SchedulerParameters": "defer,bf_max_time=60,bf_licenses,bf_continue"},
            "SchedulerParameters: bf_licenses, defer",
        ),
        (
            {
                "SchedulerParameters": (
                    "batch_sched_delay=0,bf_yield_interval=1,sched_max_job_start=3"
                )
            },
            None,
        ),
        ({"SelectTypeParameters": "CR_CORE_MEMORY,CR_LLN"}, "SelectTypeParameters: CR_LLN"),
        ({"SelectTypeParameters": "CR_Socket_Memory"}, "SelectTypeParameters: CR_SOCKET_MEMORY"),
        ({"SelectTypeParameters": "CR_CORE_MEMORY,CR_CORE_DEFAULT_DIST_BLOCK"}, None),
        ({"TopologyPlugin": "topology/tree"}, "TopologyPlugin: topology/tree"),
        ({"TopologyPlugin": "topology/flat"}, None),
        ({"TopologyPlugin": "topology/none"}, None),
        (
            {"PreemptType": "preempt/qos", "PreemptParameters": "youngest_first,send_user_signal"},
            "PreemptParameters: youngest_first",
        ),
        ({"PreemptType": "preempt/none", "PreemptParameters": "youngest_first"}, None),
        ({"SchedulerParameters": "BF_Licenses,BF_CONTINUE"}, "SchedulerParameters: bf_licenses"),
        (
            {"SchedulerParameters": "bf_hetjob_prio=min,bf_hetjob_immediate"},
            "SchedulerParameters: bf_hetjob_immediate, bf_hetjob_prio",
        ),
    ],
)
def test_unmodelled_setting_is_noted_once(config: dict[str, str], setting: str | None) -> None:
    notes = live_queue(job(7), job(8), config=config).notes
    assert notes == (
        []
        if setting is None
        else [f"{setting}: not modelled here, so that slurmctld may decide otherwise"]
    )


def test_lln_partitions_are_noted() -> None:
    texts = {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    assert recorded().notes == []
    assert " LLN=NO " in texts["partitions"]
    texts["partitions"] = texts["partitions"].replace(" LLN=NO ", " LLN=YES ", 1)
    answers, _ = read_answers(texts)
    first = answers.partitions[0].name
    assert build_queue(answers).notes == [
        f"LLN of partitions: {first}: not modelled here, so that slurmctld may decide otherwise"
    ]


def reservation(name: str, begin: int, end: int, node: str, **fields: Any) -> Reservation:
    return Reservation(
        name=name, nodes=(node,), begin=Instant(NOW + begin), end=Instant(NOW + end), **fields
    )


@pytest.mark.parametrize(
    ("names", "state"),
    [
        ("early", "n1"),
        ("late,early", "n1"),
        ("gone,early", "n1"),
        ("theirs,late", "Reservation"),
        ("past,late", "Reservation"),
        ("open,early", "n3"),
        ("gone,lost", "ReservationDeleted"),
        ("theirs,gone", "ReservationInvalid"),
    ],
)
def test_soonest_reservation_counts(names: str, state: str) -> None:
    reservations = [
        reservation("late", 600, 9_000, "n2"),
        reservation("early", -600, 9_000, "n1"),
        reservation("open", -900, 9_000, "n3"),
        reservation("theirs", -900, 9_000, "n2", users=frozenset({"bob"})),
        reservation("past", -900, -600, "n2"),
    ]
    queue = live_queue(job(7, reservation=names), reservations=reservations)
    assert states_of(queue) == {"7": state}
    assert queue.notes == (
        ["of several reservations only one counts here, the soonest: job 7"] if "," in names else []
    )


def test_first_qos_counts_and_is_noted() -> None:
    low = QosRecord(name="low", limits=AssociationLimits(jobs={LimitKind.MAX_JOBS_PER_USER: 0}))
    jobs = [job(number, qos="normal", other_qos=("low",)) for number in range(1, 8)]
    queue = live_queue(*jobs, job(8, qos="low"), running(9, "n3", other_qos=("low",)), qos=[low])
    assert queue.notes == ["of several QOS only the first counts here: job 1, 2, 3, 4, 5, ..."]
    assert (states_of(queue)["1"], states_of(queue)["8"]) == ("n1", "QOSMaxJobsPerUserLimit")


def test_list_of_qos_and_reservations_is_read() -> None:
    line = next(
        line for line in (QUEUE / "jobs.txt").read_text().splitlines() if "JobState=PENDING" in line
    )
    several = re.sub(r" QOS=\S+", " QOS=high,low,normal", line) + " Reservation=a,b"
    (job,) = read_jobs(several).rows
    assert (job.qos, job.other_qos, job.reservation) == ("high", ("low", "normal"), "a,b")


def test_each_partition_of_a_job_is_quoted() -> None:
    slurm_job = job(7, partitions=("cpu", "gpu"), tres={"cpu": 4, "mem": 1_000, "gres/gpu": 1})
    queue = live_queue(
        slurm_job, partitions=[PartitionRules(name="cpu"), PartitionRules(name="gpu")]
    )
    (pending,) = queue.snapshot.queue.jobs()
    expected = {
        "account": "bio",
        "cluster": "lab",
        "tres": "cpu=4,mem=1000M,gres/gpu=1",
        "exclusive": False,
        "time_limit": 3_600,
        "qos": "normal",
        "owner_uid": None,
        "waiting": True,
    }
    assert list(quote_requests(pending, slurm_job, "lab", {})) == [
        expected | {"partition": "cpu"},
        expected | {"partition": "gpu"},
    ]


def test_job_that_gets_whole_nodes_is_quoted_with_them() -> None:
    """Slurm shows the TRES that it requests. Whole nodes have the memory of all their CPUs."""
    sharing = (OverSubscribe.NO, OverSubscribe.FORCE, OverSubscribe.EXCLUSIVE)
    rules = {kind.value: PartitionRules(name=kind.value, sharing=kind) for kind in sharing}
    tres = {"cpu": 4, "mem": 4_000}

    def quoted(**wanted: Any) -> list[tuple[object, ...]]:
        request = ResourceRequest(cpus_per_task=4, **wanted)
        job_of_all = PendingJob(
            number=7, partitions=tuple(rules), limit=600, wanted=request, tres=tres
        )
        requests = quote_requests(job_of_all, job(7), "lab", rules)
        return [(body["exclusive"], body["tres"], body.get("mem_per_cpu")) for body in requests]

    requested = (False, "cpu=4,mem=4000M", None)
    by_cpu, by_node = (True, "cpu=4", "1000M"), (True, "cpu=4,mem=4000M", None)
    assert quoted(memory_per_cpu=1_000, exclusive=True) == [by_cpu, requested, by_cpu]
    assert quoted(memory_per_node=4_000, exclusive=True) == [by_node, requested, by_node]
    assert quoted(memory_per_cpu=1_000) == [requested, requested, by_cpu]


@pytest.mark.parametrize("fits", [True, False])
def test_unknown_whole_nodes_are_payable_at_no_price(fits: bool) -> None:
    """If the bank lacks their size, it still refuses a job whose own request is too dear."""
    request = ResourceRequest(exclusive=True)
    pending = PendingJob(number=7, partitions=("cpu",), limit=600, wanted=request)

    def quote(request: Mapping[str, object]) -> Mapping[str, Any]:
        if request["exclusive"]:
            raise InvalidInput("--exclusive takes whole nodes", field="exclusive")
        return answer_of_bank("cpu", fits=fits)

    if fits:
        with pytest.raises(InvalidInput, match="takes whole nodes"):
            job_credit(pending, job(7), "lab", {}, quote)
    else:
        assert not job_credit(pending, job(7), "lab", {}, quote).is_enough


@pytest.mark.parametrize(
    ("dear", "poor", "decides"),
    [
        # Minutes that the credit pays of a job of 10: 30,000 / 38,400 are more than 60 / 2,400.
        ((38_400, 30_000), (2_400, 60), "gpu"),
        ((38_400, 50_000), (2_400, 60), "gpu"),
        ((38_400, 50_000), (2_400, 9_000), "cpu"),
        ((38_400, 90_000), (2_400, 5_000), "gpu"),
        ((38_400, 30_000), (2_400, 9_000), "cpu"),
    ],
)
def test_quote_and_why_judge_a_job_by_the_same_partition(
    dear: tuple[int, int], poor: tuple[int, int], decides: str
) -> None:
    pending = PendingJob(number=7, partitions=("cpu", "gpu"), limit=600)

    def quote(request: Mapping[str, object]) -> Mapping[str, Any]:
        amount, available = dear if request["partition"] == "cpu" else poor
        return answer_of_bank(
            str(request["partition"]), fits=amount <= available, amount=amount, available=available
        )

    assert job_credit(pending, job(7), "lab", {}, quote).resource == decides


def answer_of_bank(
    resource: str, *, fits: bool, amount: int = 10, available: int | None = None
) -> Mapping[str, Any]:
    """Return the answer to a quote."""
    if available is None:
        available = 2 * amount if fits else amount // 2
    return {
        "account": "bio",
        "resource": resource,
        "amount": amount,
        "available": available,
        "fits": fits,
        "reason": None if fits else "INSUFFICIENT_CREDIT",
        "detail": None,
        "remedies": (),
        "longest_seconds": 600 * available // amount,
    }


def test_partition_whose_nodes_cannot_run_the_job_does_not_hide_its_credit() -> None:
    pending = PendingJob(number=7, partitions=("cpu", "gpu"), limit=600)

    def quote(request: Mapping[str, object]) -> Mapping[str, Any]:
        if request["partition"] == "cpu":
            raise InvalidInput("the nodes have no GPU", field="partition")
        return answer_of_bank("gpu", fits=True)

    assert job_credit(pending, job(7), "lab", {}, quote).resource == "gpu"
    with pytest.raises(InvalidInput, match="the nodes have no GPU"):
        job_credit(msgspec.structs.replace(pending, partitions=("cpu",)), job(7), "lab", {}, quote)


def test_job_without_a_limit_is_quoted_with_that_of_its_partition() -> None:
    """DefaultTime counts, else MaxTime; without either there is no end to pay for."""
    pending = PendingJob(number=7, partitions=("cpu", "gpu", "long"))
    rules = (
        PartitionRules(name="cpu", default_seconds=600, max_seconds=1_200),
        PartitionRules(name="gpu", max_seconds=1_200),
        PartitionRules(name="long"),
    )
    requests = quote_requests(
        pending, job(7), "lab", {partition.name: partition for partition in rules}
    )
    assert [(body["partition"], body["time_limit"]) for body in requests] == [
        ("cpu", 600),
        ("gpu", 1_200),
    ]
