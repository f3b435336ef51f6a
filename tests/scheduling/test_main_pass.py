"""Main pass: jobs in queue order; a partition is blocked behind its first job that does not fit."""

from __future__ import annotations

import pytest

from fairbank.cluster.node import Node, NodeState
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption, QosRules
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import OneEach, Scene


def test_jobs_start_in_order_until_one_does_not_fit() -> None:
    output = Scene(rack(8)).runs(1, "n[7-8]", 180).waits(2, 4).waits(3, 4).waits(4, 1).main()
    assert output.starts == {2: "n[1-4]"}
    assert output.reasons == {3: "Resources", 4: "Priority"}


def test_partitions_do_not_wait_for_each_other_unless_they_share_nodes() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1", "n2")),
        PartitionRules(name="right", nodes=("n3", "n4")),
    )
    scene = Scene(rack(4), left, right, PartitionRules(name="all"))
    scene.runs(1, "n1", 60, partition="left").waits(2, 2, partitions=("left",)).waits(
        3, 1, partitions=("right",)
    )
    scene.waits(4, 1, partitions=("all",)).waits(5, 1, partitions=("left",))
    output = scene.main()
    assert output.starts == {3: "n3", 4: "n4"}
    assert output.reasons == {2: "Resources", 5: "Priority"}
    assert (
        scene.waits(6, 1, partitions=("all",)).main().reasons[6] == "Resources"
    )  # n2 is idle, and kept for job 2


def test_job_in_two_partitions_starts_once() -> None:
    scene = Scene(rack(2), PartitionRules(name="batch"), PartitionRules(name="long"))
    assert scene.waits(1, partitions=("batch", "long")).main().starts == {1: "n1"}
    busy = Scene(
        rack(2),
        PartitionRules(name="batch", nodes=("n1",)),
        PartitionRules(name="long", nodes=("n2",)),
    )
    busy.runs(9, "n1", 60)
    assert busy.waits(1, partitions=("batch", "long")).main().starts == {1: "n2"}


def test_reason_of_a_job_in_two_partitions_is_that_of_the_last() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = (
        Scene(rack(2), left, right)
        .runs(1, "n1", 60, partition="left")
        .runs(2, "n2", 60, partition="right")
    )
    scene.waits(3, partitions=("right",), priority=9).waits(4, partitions=("left", "right"))
    assert scene.main().reasons == {3: "Resources", 4: "Priority"}


def test_job_that_can_never_run_is_reported_and_delays_no_job() -> None:
    output = Scene(rack(2)).waits(1, cpus_per_task=5).waits(2, constraint="gpu").waits(3).main()
    assert output.starts == {3: "n1"}
    assert output.reasons == {1: "BadConstraints", 2: "BadConstraints"}


@pytest.mark.parametrize("partitions", [("small", "batch"), ("batch", "small")])
@pytest.mark.parametrize(("ahead", "why"), [(0, "Resources"), (1, "Priority")])
def test_job_waits_in_one_partition_though_it_could_never_run_in_the_other(
    partitions: tuple[str, str], ahead: int, why: str
) -> None:
    fast = Node(name="fast", cpus=4, memory=4_000, features=frozenset({"fast"}))
    scene = Scene(
        [*rack(1), fast],
        PartitionRules(name="small", nodes=("n1",)),
        PartitionRules(name="batch", nodes=("fast",)),
    )
    scene.runs(1, "fast", 60)
    for number in range(ahead):
        scene.waits(10 + number, priority=9)
    assert scene.waits(2, partitions=partitions, constraint="fast").main().reasons[2] == why


def test_job_that_cannot_be_read_blocks_no_other() -> None:
    scene = (
        Scene(rack(2))
        .waits(1, constraint="a&&")
        .waits(2, excluded=("n9",))
        .waits(3, partitions=("removed",))
        .waits(4)
    )
    for output in (scene.main(), scene.backfill(), scene.both()):
        assert output.starts == {4: "n1"}
        assert output.reasons == {1: "BadConstraints", 2: "BadConstraints", 3: "PartitionConfig"}


def test_nodes_that_are_down_are_waited_for() -> None:
    scene = Scene([*rack(1), Node(name="sick", cpus=4, memory=4_000, state=NodeState.DRAINED)])
    output = scene.waits(1, required=("sick",)).waits(2, 2).waits(3).main()
    assert output.reasons == {1: "ReqNodeNotAvail", 2: "Resources", 3: "Priority"}


def test_job_that_named_its_nodes_keeps_only_those_from_others() -> None:
    output = Scene(rack(3)).runs(1, "n1", 60).waits(2, 1, required=("n1",)).waits(3).main()
    assert output.starts == {3: "n2"}
    assert output.reasons == {2: "Resources"}


def test_jobs_below_backfill_thresholds_get_no_reservation() -> None:
    scene = Scene(rack(2)).runs(1, "n1", 60).waits(2, 2, age=5, priority=7).waits(3, priority=6)
    assert scene.main().starts == {}
    assert scene.main(bf_min_age_reserve=600).starts == {3: "n2"}
    assert scene.main(bf_min_prio_reserve=8).starts == {3: "n2"}


def test_pass_ends_where_its_parameters_say() -> None:
    scene = Scene(rack(5))
    for number in range(1, 6):
        scene.waits(number)
    assert sorted(scene.main(sched_max_job_start=2).starts) == [1, 2]
    assert sorted(scene.main(default_queue_depth=2).starts) == [
        1,
        2,
        3,
    ]  # one more than it says, as in Slurm
    assert sorted(scene.main(full=True, default_queue_depth=2).starts) == [1, 2, 3, 4, 5]
    output = scene.main(partition_job_depth=2)
    assert sorted(output.starts) == [1, 2]
    assert output.reasons == dict.fromkeys((3, 4, 5), "Priority")
    assert sorted(scene.main(full=True, partition_job_depth=2).starts) == [1, 2]
    assert scene.main(sched_max_job_start=2).plan.reason(5) == "None"


def test_jobs_behind_the_first_are_counted() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = Scene(rack(2), left, right).runs(9, "n1", 60, partition="left")
    for number in range(1, 4):
        scene.waits(number, partitions=("left",))
    scene.waits(4, partitions=("right",))
    assert scene.main(default_queue_depth=3).starts == {4: "n2"}
    assert scene.main(default_queue_depth=2).starts == {}
    assert scene.main(full=True, default_queue_depth=2).starts == {4: "n2"}


def test_array_is_rejected_with_its_first_task_that_does_not_fit() -> None:
    scene = Scene(rack(2)).runs(1, "n1", 60)
    for task in range(3):
        scene.waits(10 + task, array=10, task=task)
    output = scene.main()
    assert output.starts == {10: "n2"}
    assert output.reasons == {11: "Resources", 12: "Resources"}


def test_preferred_features_are_used_if_free() -> None:
    fast = Node(name="fast", cpus=4, memory=4_000, weight=9, features=frozenset({"fast"}))
    scene = Scene([*rack(1), fast])
    assert scene.waits(1, prefer="fast").waits(2, prefer="fast").main().starts == {
        1: "fast",
        2: "n1",
    }


def test_limit_holds_only_its_own_job() -> None:
    scene = Scene(rack(4)).waits(1, user="ada").waits(2, user="ada").waits(3, user="bob")
    scene.limits = OneEach("batch")
    for output in (scene.main(), scene.main()):  # a pass keeps nothing to itself
        assert output.starts == {1: "n1", 3: "n2"}
        assert output.reasons == {2: "QOSMaxJobsPerUserLimit"}
    assert scene.main(assoc_limit_stop=True).starts == {1: "n1"}


def test_no_job_runs_into_a_reservation_of_others() -> None:
    scene = Scene(rack(2)).reserves("class", "n1", 60, 120, users=frozenset({"ada"}))
    assert scene.waits(1, minutes=60, required=("n1",)).main().reasons == {
        1: "Resources"
    }  # it would end at its first second
    assert Scene(rack(1)).reserves("class", "n1", 60, 120).waits(1, minutes=59).main().starts == {
        1: "n1"
    }


def test_reservation_is_used_by_its_jobs_until_it_ends() -> None:
    scene = Scene(rack(3)).reserves("class", "n2", -10, 60)
    scene.waits(1, reservation="class").waits(2, reservation="class").waits(3)
    output = scene.main()
    assert output.starts == {1: "n2", 3: "n1"}
    assert output.reasons == {2: "Resources"}
    longer = (
        Scene(rack(3)).reserves("class", "n2", -10, 60).waits(1, minutes=61, reservation="class")
    )
    assert longer.main().starts == {1: "n2"}, (
        "slurmctld lets it begin, and ends it with the reservation"
    )
    flexible = Scene(rack(3)).reserves("class", "n2", -10, 60, flexible=True)
    assert flexible.waits(1, 3, minutes=61, reservation="class").main().starts == {1: "n[1-3]"}


def test_maintenance_is_reported_and_blocks_no_job() -> None:
    scene = Scene(rack(2)).reserves("works", "n[1-2]", 120, 240, maintenance=True)
    output = scene.waits(1, minutes=180).waits(2, minutes=60).main()
    assert output.reasons == {1: "ReqNodeNotAvail"}
    assert output.starts == {2: "n1"}


def test_jobs_started_in_this_pass_are_not_preempted() -> None:
    scene = Scene(rack(1))
    scene.preemption = Preemption(
        by=PreemptBy.QOS, qos={"urgent": QosRules(preempts=frozenset({"scavenge"}))}
    )
    scene.waits(1, qos="scavenge", expedited=True).waits(2, qos="urgent")
    for output in (scene.main(), scene.backfill(), scene.both()):
        assert output.starts == {1: "n1"}
        assert output.instead == {}


def test_job_started_in_this_second_before_the_pass_is_preempted() -> None:
    scene = Scene(rack(1)).runs(5, "n1", 60, qos="scavenge", since=0)
    scene.preemption = Preemption(
        by=PreemptBy.QOS, qos={"urgent": QosRules(preempts=frozenset({"scavenge"}))}
    )
    scene.waits(1, qos="urgent")
    for output in (scene.main(), scene.backfill(), scene.both()):
        assert (output.instead, output.starts) == ({1: (5,)}, {1: "n1"})


@pytest.mark.parametrize(("exempt", "gone", "node"), [(0, 6, "n3"), (3_600, 7, "n4")])
def test_preemptor_takes_the_first_of_the_smallest_jobs(exempt: int, gone: int, node: str) -> None:
    """As slurmctld 22.05 does. Job 6 has run for less than an hour, the time that its QOS exempts
    from preemption.
    """
    scene = (
        Scene(rack(5))
        .runs(5, "n[1-2]", 60, qos="scavenge", priority=1, since=90)
        .runs(6, "n3", 60, qos="scavenge", priority=9)
    )
    scene.runs(7, "n4", 60, qos="scavenge", since=90).runs(8, "n5", 60, qos="normal", since=1)
    scene.preemption = Preemption(
        by=PreemptBy.QOS,
        qos={
            "urgent": QosRules(preempts=frozenset({"scavenge"})),
            "scavenge": QosRules(exempt_seconds=exempt),
        },
    )
    output = scene.waits(1, qos="urgent").waits(2, qos="normal").main()
    assert output.instead == {1: (gone,)}
    assert output.reasons == {2: "Resources"}
    assert output.starts == {1: node}


@pytest.mark.parametrize(
    ("dear", "cheap", "gone"), [(5, 4, 6), (70_000, 65_534, 6), (70_000, 65_535, 5), (4, 4, 5)]
)
def test_preemption_takes_lowest_qos_then_smallest_job(dear: int, cheap: int, gone: int) -> None:
    """As in slurmctld, which has 16 bits for the priority of a QOS. Job 5 has one node, job
    6 two.
    """
    scene = Scene(rack(3)).runs(5, "n1", 60, qos="dear").runs(6, "n[2-3]", 60, qos="cheap")
    qos = {
        "dear": QosRules(priority=dear),
        "cheap": QosRules(priority=cheap),
        "urgent": QosRules(preempts=frozenset({"dear", "cheap"})),
    }
    scene.preemption = Preemption(by=PreemptBy.QOS, qos=qos)
    scene.waits(1, qos="urgent")
    for output in (scene.main(), scene.backfill(), scene.both()):
        assert output.instead == {1: (gone,)}


def test_preemption_takes_the_lowest_tier_first() -> None:
    parts = [
        PartitionRules(name=name, tier=tier)
        for name, tier in (("low", 1), ("middle", 2), ("high", 3))
    ]
    scene = (
        Scene(rack(2), *parts)
        .runs(5, "n1", 60, partition="middle")
        .runs(6, "n2", 60, partition="low")
    )
    scene.preemption = Preemption(by=PreemptBy.PARTITION)
    output = scene.waits(1, partitions=("high",)).main()
    assert (output.instead, output.starts) == ({1: (6,)}, {1: "n2"})
