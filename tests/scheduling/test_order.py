"""Queue order: preemptors, reservations, tier, priority, submit time, number. Source:
docs/reference/slurm-rules.md, "Queue order"; RCAC.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.partition_rules import PartitionRules, PartitionState, PreemptMode
from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption, QosRules
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.preemption import can_preempt
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, Scene, ranked

LOW, HIGH = PartitionRules(name="batch"), PartitionRules(name="urgent", tier=5)
BY_QOS = Preemption(by=PreemptBy.QOS, qos={"urgent": QosRules(preempts=frozenset({"scavenge"}))})


def numbers(scene: Scene, **options: Any) -> list[int]:
    entries, _ = ranked(scene.snapshot, **options)
    return [entry.job.number for entry in entries]


def test_first_difference_decides() -> None:
    scene = Scene(rack(4), LOW, HIGH).reserves("class", "n1", -10, 90)
    scene.preemption = BY_QOS
    scene.waits(8, age=60).waits(7, age=60)  # the smaller number
    scene.waits(6, age=61)  # waited longer
    scene.waits(5, priority=2)
    scene.waits(4, partitions=("urgent",))  # a higher tier
    scene.waits(3, qos="scavenge", reservation="class")
    scene.waits(2, qos="urgent", age=1)  # can preempt the one with a reservation
    scene.waits(1, qos="scavenge", expedited=True)
    assert numbers(scene) == [1, 4, 5, 6, 7, 8, 2, 3]


def test_without_preemption_a_reservation_goes_before_tiers() -> None:
    scene = Scene(rack(4), LOW, HIGH).reserves("class", "n1", -10, 90)
    scene.waits(1, partitions=("urgent",), priority=99).waits(2, reservation="class")
    assert numbers(scene) == [2, 1]


def test_job_in_two_partitions_stands_in_the_queue_twice_with_the_priority_of_each() -> None:
    scene = Scene(rack(4), LOW, PartitionRules(name="long"))
    scene.waits(1, partitions=("batch", "long"), priorities=(5, 50)).waits(2, priority=20)
    entries, _ = ranked(scene.snapshot)
    assert [(entry.job.number, entry.rules.name) for entry in entries] == [
        (1, "long"),
        (2, "batch"),
        (1, "batch"),
    ]


def test_array_tasks_go_in_order_and_preferences_before_requirements() -> None:
    scene = (
        Scene(rack(4)).waits(11, array=9, task=2).waits(10, array=9, task=1, prefer="fast").waits(8)
    )
    entries, _ = ranked(scene.snapshot)
    assert [(entry.job.number, entry.with_preference) for entry in entries] == [
        (8, False),
        (10, True),
        (10, False),
        (11, False),
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"held": "JobHeldUser"}, "JobHeldUser"),
        ({"held": "Dependency"}, "Dependency"),
        ({"eligible": NOW + 1}, "BeginTime"),
        ({"reservation": "later"}, "Reservation"),
        ({"reservation": "theirs"}, "ReservationInvalid"),
        ({"reservation": "gone"}, "ReservationDeleted"),
        ({"minutes": 121}, "PartitionTimeLimit"),
        ({"nodes": 3}, "PartitionNodeLimit"),
        ({"partitions": ("closed",)}, "PartitionDown"),
        ({"partitions": ("wide",), "nodes": 1, "max_nodes": 1}, "PartitionNodeLimit"),
        ({"partitions": ("wide",), "nodes": 1}, "PartitionNodeLimit"),
        ({"partitions": ("wide",), "nodes": 5}, "PartitionNodeLimit"),
        ({"partitions": ("removed",)}, "PartitionConfig"),
        ({"constraint": "a&&"}, "BadConstraints"),
        ({"prefer": "[a|"}, "BadConstraints"),
        ({"excluded": ("n9",)}, "BadConstraints"),
        ({"required": ("n9",)}, "BadConstraints"),
    ],
)
def test_job_that_may_not_start_has_a_reason_and_no_place(fields: dict[str, Any], why: str) -> None:
    short = PartitionRules(name="batch", max_seconds=7_200, max_nodes=2)
    scene = Scene(
        rack(4),
        short,
        PartitionRules(name="closed", state=PartitionState.DOWN),
        PartitionRules(name="wide", min_nodes=2),
    )
    scene.reserves("later", "n1", 10, 20).reserves(
        "theirs", "n2", -10, 90, users=frozenset({"ada"})
    )
    entries, reasons = ranked(scene.waits(1, **fields).snapshot)
    assert not entries
    assert reasons == {1: why}


def test_one_partition_that_takes_it_is_enough() -> None:
    scene = Scene(
        rack(4), PartitionRules(name="batch", max_seconds=60), PartitionRules(name="long")
    )
    entries, reasons = ranked(scene.waits(1, partitions=("batch", "long")).snapshot)
    assert [entry.rules.name for entry in entries] == ["long"]
    assert reasons == {}


def test_backfill_admits_a_job_whose_least_time_is_within_the_limit() -> None:
    scene = Scene(rack(1), PartitionRules(name="batch", max_seconds=3_600)).waits(
        1, minutes=120, time_min=1_800
    )
    assert numbers(scene) == []
    assert numbers(scene, by_least_time=True) == [1]


def test_qos_that_preempt_each_other_in_a_circle_are_refused() -> None:
    one, other = QosRules(preempts=frozenset({"b"})), QosRules(preempts=frozenset({"a"}))
    with pytest.raises(
        InvalidInput, match="in a circle: a before b before a|in a circle: b before a before b"
    ):
        Preemption(by=PreemptBy.QOS, qos={"a": one, "b": other})


def test_partitions_preempt_by_tier_where_they_share_nodes_and_the_lower_one_may_be_preempted() -> (
    None
):
    low = PartitionRules(name="batch", nodes=("n1", "n2"))
    apart = PartitionRules(name="apart", tier=9, nodes=("n3",))
    safe = PartitionRules(name="safe", preempted=PreemptMode.OFF)
    scene = Scene(rack(3), low, apart, safe, HIGH)
    scene.preemption = Preemption(by=PreemptBy.PARTITION)
    nodes = scene.snapshot.machine
    assert can_preempt(nodes, ("urgent", ""), ("batch", ""))
    assert not can_preempt(nodes, ("batch", ""), ("urgent", ""))
    assert not can_preempt(nodes, ("apart", ""), ("batch", ""))
    assert not can_preempt(nodes, ("urgent", ""), ("safe", ""))


def test_removed_partition_is_not_replaced_by_another() -> None:
    entries, reasons = ranked(Scene(rack(1)).waits(1, partitions=("removed", "batch")).snapshot)
    assert [entry.rules.name for entry in entries] == ["batch"]
    assert reasons == {}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"partitions": ()}, "partitions"),
        ({"priorities": (1, 2)}, "priorities"),
        ({"limit": 0}, "limit"),
        ({"time_min": -5}, "time_min"),
    ],
)
def test_impossible_job_is_reported(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match="job 7 has") as no:
        PendingJob(number=7, **fields)
    assert no.value.field == field


jobs = st.lists(
    st.fixed_dictionaries(
        {
            "qos": st.sampled_from(["", "scavenge", "urgent"]),
            "partitions": st.sampled_from([("batch",), ("urgent",)]),
            "priority": st.integers(1, 3),
            "expedited": st.sampled_from([False, False, True]),
        }
    ),
    max_size=12,
)


@given(jobs, st.booleans())
def test_queue_order_is_total_and_preemptors_go_first(
    drawn: list[dict[str, Any]], by_qos: bool
) -> None:
    scene = Scene(rack(1), LOW, HIGH)
    scene.preemption = BY_QOS if by_qos else Preemption(by=PreemptBy.PARTITION)
    for number, fields in enumerate(drawn):
        scene.waits(number, **fields)
    snapshot = scene.snapshot
    entries, _ = ranked(snapshot)
    assert sorted(entry.job.number for entry in entries) == list(range(len(drawn)))
    plain = [entry for entry in entries if not entry.job.expedited]
    kinds = [(entry.rules.name, entry.job.qos) for entry in plain]
    for at, kind in enumerate(kinds):
        assert not any(can_preempt(snapshot.machine, behind, kind) for behind in kinds[at:])
    assert all(
        one.rank < other.rank
        for one, other in pairwise(plain)
        if not snapshot.machine.preemption.qos and one.rules is other.rules
    )
