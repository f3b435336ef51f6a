"""Snapshot from the output of a live Slurm: pending reasons, running jobs with their nodes, limits
while jobs start.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairbank.cluster.dependency import Dependencies, Dependency
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.time import Instant
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits
from fairbank.scheduling.machines.node_snapshot import apply_plan
from fairbank.scheduling.machines.nodes import PreemptBy
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.jobs import JobNodes, SlurmJob, read_jobs
from fairbank.slurm.parsers.limits import LimitRecord, QosRecord
from fairbank.slurm.parsers.machine import Licence
from fairbank.slurm.queue_snapshot.snapshot import (
    COMMANDS,
    LiveQueue,
    QueueAnswers,
    build_queue,
    preemption,
    quote_requests,
    read_answers,
)

QUEUE = Path(__file__).parents[2] / "golden" / "slurm-22.05" / "queue"
NOW = 1_000_000
ENFORCED = {
    "AccountingStorageEnforce": "associations,limits,qos",
    "SelectTypeParameters": "CR_CORE_MEMORY",
}
ROOT, BIO = LimitRecord(name="root"), LimitRecord(name="bio", parent="root")
AFTER = Dependencies("afterok:6(unfulfilled)", (Dependency(kind="afterok", job=6),))
ALICE = LimitRecord(name="bio", user="alice", parent="bio")


def job(number: int, **other: Any) -> SlurmJob:
    usual: dict[str, Any] = {
        "job_id": number, "name": f"job{number}", "state": "PENDING", "user": "alice",
        "account": "bio", "qos": "normal",
        "partitions": ("cpu",), "priority": 1_000 - number, "submitted": NOW - 60,
        "eligible": NOW - 60, "started": None, "ends": None,
        "expected": None, "limit": 3_600, "time_min": None, "reason": "None",
        "dependencies": Dependencies(), "reservation": None,
        "wanted": ResourceRequest(memory_per_node=1), "licences": {}, "tres": {"cpu": 1, "node": 1},
    }  # fmt: skip
    return SlurmJob(**(usual | other))


def running(number: int, *nodes: str, **other: Any) -> SlurmJob:
    usual = {
        "state": "RUNNING",
        "started": NOW - 60,
        "ends": NOW + 600,
        "allocated": (JobNodes(nodes, 4, 1_000),),
    }
    return job(number, **(usual | other))


def there(*jobs: SlurmJob, **other: Any) -> LiveQueue:
    usual: dict[str, Any] = {
        "now": NOW, "config": ENFORCED, "nodes": [Node(name=f"n{number}", cpus=4,
        memory=4_000) for number in (1, 2, 3)],
        "partitions": [PartitionRules(name="cpu")], "reservations": (), "jobs": jobs,
        "associations": (ROOT, BIO, ALICE),
    }  # fmt: skip
    return build_queue(QueueAnswers(**(usual | other)))


def told(found: LiveQueue) -> dict[str, str]:
    """Of each job that waits, by the name that squeue gives it: where it starts, or why not."""
    plan = run_passes(found.snapshot, found.parameters, found.now)
    starts = {
        start.job.name: found.snapshot.machine.cluster.names(start.placement.nodes)
        for start in plan.starts
    }
    waits = {each.name: plan.reason(each.number) for each in found.snapshot.queue.jobs()}
    return waits | starts


# --- recorded ---


def recorded() -> LiveQueue:
    said, unread = read_answers({name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS})
    assert unread == ()
    return build_queue(said)


def test_a_queue_of_2205_waits_for_the_reasons_that_squeue_shows() -> None:
    rows = [line.split("|") for line in (QUEUE / "squeue.txt").read_text().splitlines()]
    theirs = {name: words.reason(reason) for name, state, reason, *_ in rows if state == "PENDING"}
    assert told(recorded()) == theirs
    assert len(theirs) > 10


def test_a_queue_of_2205_is_planned_as_slurmctld_planned_it() -> None:
    """To the second, but for the first of the queue, which it told 44 s later. Of an array squeue
    tells when the last task is to start.
    """
    found = recorded()
    plan = run_passes(found.snapshot, found.parameters, found.now)
    last = {found.slurm_jobs[each.job.number].job_id: each.at for each in plan.reservations}
    theirs = {
        told.job_id: told.expected
        for told in found.slurm_jobs.values()
        if told.is_pending and told.expected and told.reason != "BeginTime"
    }
    assert last.keys() == theirs.keys()
    assert {
        number: (theirs[number] or 0) - at for number, at in last.items() if at != theirs[number]
    } == {5: 44}


def test_nodes_of_finished_jobs_in_2205() -> None:
    found = recorded()
    rows = [line.split("|") for line in (QUEUE / "squeue.txt").read_text().splitlines()]
    theirs = {name: nodes for name, state, _, nodes, _ in rows if state == "RUNNING"}
    names = found.snapshot.machine.cluster.names
    assert {each.job.name: names(each.placement.nodes) for each in found.snapshot.running} == theirs


# --- who waits ---


@pytest.mark.parametrize(
    ("other", "word"),
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
def test_only_what_cannot_be_found_is_believed(other: dict[str, Any], word: str) -> None:
    assert told(there(job(7, **other))) == {"7": word}


def test_tasks_of_an_array_are_jobs_of_their_own() -> None:
    alone: dict[str, Any] = {"array": 7, "wanted": ResourceRequest(exclusive=True), "priority": 5}
    found = told(there(job(7, tasks=(1, 2, 5), **alone), job(9, task=0, **alone)))
    assert found == {"7_0": "n1", "7_1": "n2", "7_2": "n3", "7_5": "Resources"}


def test_an_array_runs_no_more_tasks_than_its_throttle_lets_it() -> None:
    found = told(
        there(running(6, "n1", array=6, task=0), job(7, array=6, tasks=(1, 2, 3), throttle=2))
    )
    assert found == {"6_1": "n2", "6_2": "JobArrayTaskLimit", "6_3": "JobArrayTaskLimit"}


def test_job_with_unknown_resources_is_left_out_and_noted() -> None:
    found = there(running(6, "n1", allocated=()), running(8, "n9"))
    assert found.snapshot.running == []
    assert found.notes == [
        "job 6 is left out: it is not told what job 6 has",
        "job 8 is left out: job 8 runs on n9, and there is no such node",
    ]


def test_memory_holds_no_job_if_it_is_not_counted() -> None:
    jobs = (
        running(6, "n1", "n2", "n3", allocated=(JobNodes(("n1", "n2", "n3"), 1, 4_000),)),
        job(7, wanted=ResourceRequest(memory_per_node=3_000)),
    )
    assert told(there(*jobs)) == {"7": "Resources"}
    assert told(there(*jobs, config={**ENFORCED, "SelectTypeParameters": "CR_CORE"})) == {"7": "n1"}
    assert told(there(*jobs, config={"SelectType": "select/linear"})) == {"7": "Resources"}


# --- limits ---


def test_jobs_of_an_account_are_counted_as_they_start() -> None:
    bio = msgspec.structs.replace(BIO, limits=AssociationLimits(jobs={LimitKind.GRP_JOBS: 2}))
    found = there(
        running(6, "n1"),
        job(7),
        job(8),
        job(9, user="eve", account="else"),
        associations=(ROOT, bio, ALICE),
    )
    assert told(found) == {"7": "n2", "8": "AssocGrpJobsLimit", "9": "n2"}


def test_a_node_that_its_account_uses_already_counts_once() -> None:
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"node": 2}})
    )
    jobs = (
        running(6, "n1"),
        job(7, wanted=ResourceRequest(memory_per_node=1, required=("n2",))),
        job(8),
        job(9, wanted=ResourceRequest(required=("n3",))),
    )
    assert told(there(*jobs, associations=(ROOT, bio, ALICE))) == {
        "7": "n2",
        "8": "n2",
        "9": "AssocGrpNodeLimit",
    }


def ended(found: LiveQueue, number: int, seconds: int = 60) -> LiveQueue:
    """The same when this one has ended that ran."""
    (gone,) = [each for each in found.snapshot.running if each.number == number]
    found.snapshot.end(gone)
    found.snapshot.machine.limits.record_end(gone.job, gone.placement, seconds)
    return found


def test_what_has_ended_does_not_count_any_more() -> None:
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(
            jobs={LimitKind.GRP_JOBS: 1}, tres={LimitKind.GRP_TRES: {"node": 1, "cpu": 1}}
        ),
    )
    jobs = running(6, "n1"), job(7, wanted=ResourceRequest(exclusive=False))
    assert told(there(*jobs, associations=(ROOT, bio, ALICE))) == {"7": "AssocGrpJobsLimit"}
    assert told(ended(there(*jobs, associations=(ROOT, bio, ALICE)), 6)) == {"7": "n1"}


def test_nodes_on_which_others_of_the_group_still_run_go_on_counting() -> None:
    bio = msgspec.structs.replace(
        BIO, limits=AssociationLimits(tres={LimitKind.GRP_TRES: {"node": 1}})
    )
    given = (JobNodes(("n1",), 1, 1_000),)
    jobs = (
        running(5, "n1", allocated=given),
        running(6, "n1", allocated=given),
        job(7, wanted=ResourceRequest(exclusive=True)),
    )
    found = ended(there(*jobs, associations=(ROOT, bio, ALICE)), 5)
    assert told(found) == {"7": "AssocGrpNodeLimit"}
    assert told(ended(found, 6)) == {"7": "n1"}


@pytest.mark.parametrize(("ran", "word"), [(300, "n1"), (540, "AssocGrpCPUMinutesLimit")])
def test_what_it_used_up_until_its_end_stays_used(ran: int, word: str) -> None:
    """Of 70 minutes the new job wants 60; the other ran one before it was asked, and the time that
    it leaves is free again.
    """
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 70}}),
        seconds={"cpu": 120.0},
    )
    safe = {**ENFORCED, "AccountingStorageEnforce": "safe"}

    def found() -> LiveQueue:
        return there(
            running(6, "n1", ends=NOW + 600), job(7), associations=(ROOT, bio, ALICE), config=safe
        )

    assert told(found()) == {"7": "AssocGrpCPUMinutesLimit"}
    assert told(ended(found(), 6, ran)) == {"7": word}


def test_licences_and_places_in_an_array_come_back() -> None:
    licence = Licence("matlab", total=1, free=0)
    jobs = running(6, "n1", licences={"matlab": 1}), job(7, licences={"matlab": 1})
    assert told(there(*jobs, licences=(licence,))) == {"7": "Licenses"}
    assert told(ended(there(*jobs, licences=(licence,)), 6)) == {"7": "n1"}
    jobs = running(6, "n1", array=6, task=0), job(7, array=6, tasks=(1, 2), throttle=1)
    assert told(there(*jobs)) == {"6_1": "JobArrayTaskLimit", "6_2": "JobArrayTaskLimit"}
    assert sorted(told(ended(there(*jobs), 6)).values()) == ["JobArrayTaskLimit", "n1"]


def test_limits_that_are_not_enforced_hold_no_job() -> None:
    bio = msgspec.structs.replace(BIO, limits=AssociationLimits(jobs={LimitKind.GRP_JOBS: 0}))
    assert told(there(job(7), associations=(ROOT, bio, ALICE), config={})) == {"7": "n1"}


def test_what_is_used_up_for_good_counts() -> None:
    bio = msgspec.structs.replace(
        BIO,
        limits=AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": 10}}),
        seconds={"cpu": 600.0},
    )
    assert told(there(job(7), associations=(ROOT, bio, ALICE))) == {"7": "AssocGrpCPUMinutesLimit"}


def test_a_qos_counts_by_user_and_the_qos_of_the_partition_goes_before() -> None:
    low = QosRecord(name="low", limits=AssociationLimits(jobs={LimitKind.MAX_JOBS_PER_USER: 1}))
    jobs = job(7, qos="low"), job(8, qos="low"), job(9, qos="low", user="bob"), job(10)
    assert told(there(*jobs, qos=[low])) == {
        "7": "n1",
        "8": "QOSMaxJobsPerUserLimit",
        "9": "n1",
        "10": "n1",
    }
    of_all = told(there(*jobs, qos=[low], partition_qos={"cpu": "low"}))
    assert of_all == {
        "7": "n1",
        "8": "QOSMaxJobsPerUserLimit",
        "9": "n1",
        "10": "QOSMaxJobsPerUserLimit",
    }


def test_licences_run_out() -> None:
    found = there(
        job(7, licences={"x": 2}), job(8, licences={"x": 2}), job(9), licences=[Licence("x", 5, 3)]
    )
    assert told(found) == {"7": "n1", "8": "Licenses", "9": "n1"}


def test_what_has_started_is_not_forgotten_in_the_next_pass() -> None:
    found = there(
        job(7, licences={"x": 2}), job(8, licences={"x": 2}), licences=[Licence("x", 3, 3)]
    )
    plan = run_passes(found.snapshot, found.parameters, NOW)
    after = apply_plan(found.snapshot, plan, NOW)
    assert [start.job.number for start in plan.starts] == [7]
    assert run_passes(after, found.parameters, NOW).starts == []


# --- the rest ---


def test_preemption() -> None:
    low, high = (
        QosRecord(name="low", priority=3, mode="CANCEL", exempt_seconds=60),
        QosRecord(name="high", preempts=frozenset({"low"})),
    )
    found = preemption({"PreemptType": "preempt/qos", "PreemptMode": "GANG,REQUEUE"}, [low, high])
    assert (found.by, found.mode) == (PreemptBy.QOS, PreemptMode.REQUEUE)
    assert (found.qos["high"].priority, found.qos["high"].preempts) == (0, frozenset({"low"}))
    assert (
        found.qos["low"].priority,
        found.qos["low"].preempted,
        found.qos["low"].exempt_seconds,
    ) == (3, PreemptMode.CANCEL, 60)
    assert (
        preemption({"PreemptType": "preempt/none", "PreemptMode": "OFF"}, []).by is PreemptBy.NONE
    )


def test_parameters_that_are_not_known_are_noted_and_passed_over() -> None:
    found = there(
        config={"SchedulerParameters": "bf_interval=10,bf_window=0,something_new=3,bf_continue"}
    )
    assert (
        found.parameters.bf_interval,
        found.parameters.bf_window,
        found.parameters.bf_continue,
    ) == (10, 1_440, True)
    assert [note.partition(",")[0] for note in found.notes] == [
        "SchedulerParameters: 0 is not a bf_window",
        "SchedulerParameters: 'something_new' is not a parameter of the scheduler",
    ]


@pytest.mark.parametrize(
    ("config", "told"),
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
    ],
)
def test_a_setting_that_is_not_modelled_is_noted_once(
    config: dict[str, str], told: str | None
) -> None:
    notes = there(job(7), job(8), config=config).notes
    assert notes == (
        []
        if told is None
        else [f"{told}: not modelled here, so that slurmctld may decide otherwise"]
    )


def test_partitions_whose_least_loaded_nodes_go_first_are_noted() -> None:
    texts = {name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS}
    assert recorded().notes == []
    assert " LLN=NO " in texts["partitions"]
    texts["partitions"] = texts["partitions"].replace(" LLN=NO ", " LLN=YES ", 1)
    said, _ = read_answers(texts)
    first = said.partitions[0].name
    assert build_queue(said).notes == [
        f"LLN of partitions: {first}: not modelled here, so that slurmctld may decide otherwise"
    ]


def reserved(name: str, begin: int, end: int, node: str, **other: Any) -> Reservation:
    return Reservation(
        name=name, nodes=(node,), begin=Instant(NOW + begin), end=Instant(NOW + end), **other
    )


@pytest.mark.parametrize(
    ("asked", "goes"),
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
def test_of_several_reservations_the_one_that_lets_it_in_soonest_counts(
    asked: str, goes: str
) -> None:
    some = [
        reserved("late", 600, 9_000, "n2"), reserved("early", -600, 9_000, "n1"), reserved("open",
        -900, 9_000, "n3"),
        reserved("theirs", -900, 9_000, "n2", users=frozenset({"bob"})), reserved("past", -900,
        -600, "n2"),
    ]  # fmt: skip
    found = there(job(7, reservation=asked), reservations=some)
    assert told(found) == {"7": goes}
    assert found.notes == (
        ["of several reservations only one counts here, the soonest: job 7"] if "," in asked else []
    )


def test_of_several_qos_the_first_counts_and_that_is_noted_for_the_first_few() -> None:
    low = QosRecord(name="low", limits=AssociationLimits(jobs={LimitKind.MAX_JOBS_PER_USER: 0}))
    jobs = [job(number, qos="normal", other_qos=("low",)) for number in range(1, 8)]
    found = there(*jobs, job(8, qos="low"), running(9, "n3", other_qos=("low",)), qos=[low])
    assert found.notes == ["of several QOS only the first counts here: job 1, 2, 3, 4, 5, ..."]
    assert (told(found)["1"], told(found)["8"]) == ("n1", "QOSMaxJobsPerUserLimit")


def test_a_list_of_qos_and_reservations_is_read() -> None:
    line = next(
        each for each in (QUEUE / "jobs.txt").read_text().splitlines() if "JobState=PENDING" in each
    )
    several = re.sub(r" QOS=\S+", " QOS=high,low,normal", line) + " Reservation=a,b"
    (found,) = read_jobs(several).rows
    assert (found.qos, found.other_qos, found.reservation) == ("high", ("low", "normal"), "a,b")


def test_the_bank_is_asked_about_each_partition_of_a_job() -> None:
    asking = job(7, partitions=("cpu", "gpu"), tres={"cpu": 4, "mem": 1_000, "gres/gpu": 1})
    found = there(asking, partitions=[PartitionRules(name="cpu"), PartitionRules(name="gpu")])
    (waits,) = found.snapshot.queue.jobs()
    usual = {
        "account": "bio",
        "cluster": "lab",
        "tres": "cpu=4,mem=1000M,gres/gpu=1",
        "time_limit": 3_600,
        "qos": "normal",
    }
    assert list(quote_requests(waits, asking, "lab")) == [
        usual | {"partition": "cpu"},
        usual | {"partition": "gpu"},
    ]
    assert list(quote_requests(msgspec.structs.replace(waits, limit=None), asking, "lab")) == []
