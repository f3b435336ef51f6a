"""Backfill: gaps are filled as long as no earlier job is delayed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption, QosRules
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import OneEach, Scene


def test_rcac_example_with_eight_nodes() -> None:
    """A large job needs 8 nodes; 6 are idle and 2 busy for 3 hours. Jobs that end before then run
    on the 6, others wait. Source: RCAC.
    """
    scene = Scene(rack(8)).runs(1, "n[7-8]", 180)
    scene.waits(2, 8, minutes=600, priority=9).waits(3, 4, minutes=240).waits(
        4, 4, minutes=179
    ).waits(5, 2, minutes=60).waits(6, 1, minutes=10)
    output = scene.both()
    assert output.starts == {4: "n[1-4]", 5: "n[5-6]"}
    assert output.planned == {2: (180, "n[1-8]"), 3: (780, "n[1-4]"), 6: (60, "n5")}
    assert output.reasons == {2: "Resources", 3: "Priority", 6: "Priority"}


@pytest.mark.parametrize(
    ("minutes", "starts"), [(178, {3: "n1"}), (179, {3: "n1"}), (180, {}), (181, {})]
)
def test_job_that_ends_at_the_second_at_which_the_plan_begins_does_not_fit(
    minutes: int, starts: dict[int, str]
) -> None:
    scene = Scene(rack(2)).runs(1, "n2", 180).waits(2, 2).waits(3, 1, minutes=minutes)
    assert scene.backfill().starts == starts


def test_every_tested_job_is_planned_and_not_delayed() -> None:
    scene = Scene(rack(4)).runs(1, "n[1-4]", 60)
    output = scene.waits(2, 3, 60).waits(3, 2, 60).waits(4, 1, 30).waits(5, 1, 600).backfill()
    assert output.starts == {}
    assert output.planned == {2: (60, "n[1-3]"), 3: (120, "n[1-2]"), 4: (60, "n4"), 5: (90, "n4")}


def test_plans_keep_whole_nodes_though_the_job_needs_a_part_of_one() -> None:
    scene = Scene(rack(1, cpus=8)).runs(
        1, "n1", 60, exclusive=False, cpus_per_task=6, memory_per_node=1
    )
    small: dict[str, Any] = {"exclusive": False, "memory_per_node": 1}
    scene.waits(2, 1, 60, cpus_per_task=4, **small).waits(
        3, 1, 120, cpus_per_task=1, **small
    ).waits(4, 1, 30, cpus_per_task=1, **small)
    output = scene.backfill()
    assert output.starts == {4: "n1"}
    assert output.planned == {2: (60, "n1"), 3: (120, "n1")}


def test_job_is_planned_when_the_last_of_those_that_it_needs_has_ended() -> None:
    scene = Scene(rack(4)).runs(1, "n1", 10).runs(2, "n2", 20).runs(3, "n3", 30).runs(4, "n4", 40)
    assert scene.waits(5, 2).backfill().planned == {5: (20, "n[1-2]")}


def test_job_waits_for_the_last_end_after_a_reservation() -> None:
    """The reservation ends before the last job does. The job begins at that end, and the past
    reservation does not delay it.
    """
    scene = Scene(rack(3)).runs(1, "n1", 30).runs(2, "n2", 180).reserves("class", "n3", 100, 179)
    assert scene.waits(5, 3, 60).backfill().planned == {5: (180, "n[1-3]")}


def test_job_that_should_have_ended_is_expected_to_end_soon() -> None:
    """At its limit a job gets SIGTERM, and SIGKILL half a minute later. After that it may end at
    any second.
    """
    assert Scene(rack(1)).runs(1, "n1", 0).waits(2).backfill().planned == {2: (1 / 2, "n1")}
    assert Scene(rack(1)).runs(1, "n1", -5).waits(2).backfill().planned == {2: (1 / 60, "n1")}


def test_beyond_bf_window_a_time_is_given_without_reservation() -> None:
    scene = Scene(rack(2)).runs(1, "n1", 180).waits(2, 2, 60).waits(3, 1, 600)
    assert scene.backfill(bf_window=200).starts == {}
    output = scene.backfill(bf_window=120)
    assert output.starts == {3: "n2"}
    assert output.planned == {2: (180, "n[1-2]")}


def test_no_reservation_below_bf_min_age_or_priority() -> None:
    scene = (
        Scene(rack(2))
        .runs(1, "n1", 180)
        .waits(2, 2, age=5, priority=7)
        .waits(3, 1, 600, priority=6)
    )
    assert scene.backfill().starts == {}
    for setting in ({"bf_min_age_reserve": 600}, {"bf_min_prio_reserve": 8}):
        assert scene.backfill(**setting).starts == {3: "n2"}


def test_number_of_tested_jobs_per_user_association_and_partition_is_limited() -> None:
    scene = Scene(rack(9))
    for number, (user, account) in enumerate(
        [("ada", "x"), ("ada", "x"), ("ada", "y"), ("bob", "x")], 1
    ):
        scene.waits(number, user=user, account=account)
    assert sorted(scene.backfill(bf_max_job_user=1).starts) == [1, 4]
    assert sorted(scene.backfill(bf_max_job_user=1, bf_max_job_assoc=1).starts) == [1, 3, 4]
    assert sorted(scene.backfill(bf_max_job_part=2).starts) == [1, 2]
    assert sorted(scene.backfill(bf_max_job_user_part=2).starts) == [1, 2, 4]
    assert sorted(scene.backfill(bf_max_job_test=3).starts) == [1, 2, 3]
    assert sorted(scene.backfill(bf_max_job_start=1).starts) == [1]


def test_with_one_plan_for_each_partition_it_is_nearly_easy() -> None:
    scene = (
        Scene(rack(3))
        .runs(1, "n1", 60)
        .waits(2, 3, 60)
        .waits(3, 3, 60)
        .waits(4, 2, 60)
        .waits(5, 1, 50)
    )
    assert sorted(scene.backfill().planned) == [2, 3, 4]
    output = scene.backfill(bf_job_part_count_reserve=1)
    assert sorted(output.planned) == [2]
    assert output.starts == {5: "n2"}


def test_time_min_gets_the_longest_possible_time() -> None:
    scene = Scene(rack(2)).runs(1, "n1", 100).waits(2, 2, 60)
    assert scene.waits(3, 1, 600, time_min=1_800).backfill().minutes == {3: 100}
    scene.pending.pop()
    assert scene.waits(3, 1, 600, time_min=6_001).backfill().starts == {}


def test_less_time_ends_before_a_reservation_of_others_and_with_its_own() -> None:
    scene = (
        Scene(rack(2))
        .reserves("class", "n1", 90, 200)
        .waits(1, 1, 600, time_min=1_800, required=("n1",))
    )
    assert scene.backfill().minutes == {1: 90}
    scene = Scene(rack(2)).reserves("class", "n1", -10, 50)
    assert scene.waits(1, 1, 600, time_min=1_800, reservation="class").backfill().minutes == {1: 50}


def test_preemptor_looks_at_nodes_that_are_busy_until_a_plan_begins_elsewhere() -> None:
    scene = Scene(rack(3)).runs(7, "n[1-2]", 600, qos="scavenge").runs(8, "n3", 30, qos="normal")
    scene.preemption = Preemption(
        by=PreemptBy.QOS,
        qos={"urgent": QosRules(preempts=frozenset({"scavenge"})), "scavenge": QosRules()},
    )
    scene.waits(1, required=("n3",), priority=9, qos="normal").waits(2, 2, qos="urgent")
    output = scene.backfill()
    assert output.instead == {2: (7,)}
    assert output.planned == {1: (30, "n3")}


def test_task_of_an_array_is_planned_up_to_the_count_that_is_allowed() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60)
    for task in range(4):
        scene.waits(10 + task, minutes=60, array=10, task=task)
    assert sorted(scene.backfill(bf_max_job_array_resv=1).planned) == [10, 11]


def test_plans_keep_off_reservations_and_fit_between_them() -> None:
    scene = Scene(rack(1)).runs(1, "n1", 60).reserves("class", "n1", 100, 200)
    assert scene.waits(2, minutes=39).backfill().planned == {2: (60, "n1")}
    scene.pending.clear()
    assert scene.waits(2, minutes=41).backfill().planned == {2: (200, "n1")}


def test_node_that_is_idle_but_reserved_is_planned_for_when_the_reservation_ends() -> None:
    scene = Scene(rack(2)).runs(1, "n2", 60).reserves("class", "n1", -10, 5)
    assert scene.waits(2).backfill().planned == {2: (5, "n1")}


def test_partitions_have_their_own_nodes_in_one_plan() -> None:
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = Scene(rack(2), left, right).runs(1, "n1", 60, partition="left")
    output = (
        scene.waits(2, partitions=("left",))
        .waits(3, partitions=("right",))
        .waits(4, partitions=("left", "right"))
        .backfill()
    )
    assert output.starts == {3: "n2"}
    assert output.planned == {2: (60, "n1"), 4: (60, "n2")}  # the earlier of its two plans is told


@pytest.mark.parametrize("stops", [False, True])
def test_partition_limit_does_not_hold_jobs_of_other_partitions(stops: bool) -> None:
    scene = Scene(rack(3), PartitionRules(name="batch"), PartitionRules(name="long"))
    scene.waits(1, user="ada").waits(2, user="ada", partitions=("batch", "long")).waits(
        3, user="ada"
    )
    scene.limits = OneEach("batch")
    output = scene.backfill(assoc_limit_stop=stops)
    assert output.starts == {1: "n1", 2: "n2"}
    assert output.plan.starts[1].placement.partition == "long"
    assert output.reasons == {3: "QOSMaxJobsPerUserLimit"}


def test_preemptor_takes_its_place_now_and_those_behind_see_the_difference() -> None:
    scene = (
        Scene(rack(2))
        .runs(7, "n1", 60, qos="scavenge")
        .runs(8, "n2", 30, qos="scavenge", priority=2)
    )
    scene.preemption = Preemption(
        by=PreemptBy.QOS,
        qos={"urgent": QosRules(preempts=frozenset({"scavenge"})), "scavenge": QosRules()},
    )
    output = scene.waits(1, minutes=90, qos="urgent").waits(2).waits(3, minutes=30).backfill()
    assert output.instead == {1: (7,)}
    assert output.starts == {1: "n1"}
    assert output.planned == {2: (30, "n2"), 3: (90, "n1")}


def test_jobs_that_share_a_node_are_planned_when_enough_of_it_is_free() -> None:
    small: dict[str, Any] = {"exclusive": False, "memory_per_node": 1}
    scene = (
        Scene(rack(1, cpus=8))
        .runs(1, "n1", 20, cpus_per_task=4, **small)
        .runs(2, "n1", 70, cpus_per_task=4, **small)
    )
    assert scene.waits(3, cpus_per_task=3, **small).backfill().planned == {3: (20, "n1")}
    assert scene.waits(4, cpus_per_task=8, age=90, **small).backfill().planned[4] == (70, "n1")


@pytest.mark.parametrize(("only_one", "begin"), [(False, 150), (True, 90)])
def test_reservation_in_one_partition_only_with_bf_one_resv_per_job(
    only_one: bool, begin: int
) -> None:
    """Job 3 has plans in both: from minute 60 on n1, from 90 on n2. Job 4, behind it, wants n2."""
    left, right = (
        PartitionRules(name="left", nodes=("n1",)),
        PartitionRules(name="right", nodes=("n2",)),
    )
    scene = (
        Scene(rack(2), left, right)
        .runs(1, "n1", 60, partition="left")
        .runs(2, "n2", 90, partition="right")
    )
    output = (
        scene.waits(3, partitions=("left", "right"))
        .waits(4, partitions=("right",))
        .backfill(bf_one_resv_per_job=only_one)
    )
    assert output.planned == {3: (60, "n1"), 4: (begin, "n2")}


@pytest.mark.parametrize(
    ("linear", "planned"),
    [(0, (21, "n[1-2]")), (30, (21, "n[1-2]")), (29, (20, "n[2,5]")), (1, (20, "n[2,5]"))],
)
def test_stretches_double_or_grow_by_the_configured_length(
    linear: int, planned: tuple[int, str]
) -> None:
    """The first stretch begins with the end of minute 10, when only one node is free and the job
    does not fit. The next stretch has the end of minute 20, and with a length of a minute also that
    of minute 21; then two adjacent nodes are free.
    """
    scene = (
        Scene(rack(5)).runs(1, "n1", 21).runs(2, "n2", 10).runs(3, "n[3-4]", 600).runs(5, "n5", 20)
    )
    assert scene.waits(9, 2).backfill(bf_window_linear=linear).planned == {9: planned}


@pytest.mark.parametrize(
    ("resolution", "minutes", "starts"),
    [
        (1, 60, True),
        (1, 61, False),
        (60, 60, True),
        (60, 61, False),
        (600, 52, True),
        (600, 53, False),
        (3600, 9, True),
        (3600, 13, False),
    ],
)
def test_plan_and_a_reservation_begin_with_a_step(
    resolution: int, minutes: int, starts: bool
) -> None:
    """Both nodes are requested, or reserved, from minute 61 on. In steps of ten minutes, counted
    from 1970, that is minute 53; in steps of an hour, minute 13. A job that would still run at that
    second does not fit.
    """
    planned = (
        Scene(rack(2))
        .runs(1, "n2", 61)
        .waits(2, 2)
        .waits(3, 1, minutes)
        .backfill(bf_resolution=resolution)
    )
    assert (3 in planned.starts) is starts
    reserved = (
        Scene(rack(2))
        .reserves("class", "n[1-2]", 61, 120)
        .waits(3, 1, minutes)
        .backfill(bf_resolution=resolution)
    )
    assert (3 in reserved.starts) is starts


def test_stretches_grow_with_their_distance() -> None:
    scene = Scene(rack(5))
    for number, minutes in enumerate((10, 11, 12, 14, 30), 1):
        scene.runs(number, f"n{number}", minutes)
    assert scene.waits(9, 1, 5).backfill().planned == {9: (10, "n1")}
    assert scene.waits(10, 3, 5, age=90).backfill().planned[10] == (12, "n[1-3]")


SMALL: dict[str, Any] = {"exclusive": False, "memory_per_node": 1}
"""Jobs that share nodes."""


def test_end_of_a_job_started_in_the_cycle_is_tried_before_the_first_running_end() -> None:
    """The first running job ends behind bf_window. Job 2 starts and ends within it: job 3 is
    planned for that end, and holds off job 4, which is longer.
    """
    scene = Scene(rack(2)).runs(1, "n1", 17, cpus_per_task=1, **SMALL)
    scene.waits(2, 2, 2, priority=9, cpus_per_task=2, **SMALL)
    scene.waits(3, 2, 28, priority=8, cpus_per_task=3, **SMALL)
    scene.waits(4, 1, 24, priority=7, cpus_per_task=1, **SMALL)
    output = scene.backfill(bf_window=5)
    assert output.starts == {2: "n[1-2]"}
    assert output.planned == {3: (2, "n[1-2]")}


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 2)), max_size=3),
    st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(1, 4)),
    st.lists(
        st.tuples(st.integers(1, 2), st.integers(1, 40), st.integers(1, 4)), min_size=1, max_size=3
    ),
    st.sampled_from([5, 10, 15, 1_440]),
    st.sampled_from([1, 60]),
)
@settings(max_examples=200, deadline=None)
def test_job_started_in_the_cycle_is_planned_around_as_a_running_job(
    running: list[tuple[int, int]],
    first: tuple[int, int, int],
    behind: list[tuple[int, int, int]],
    window: int,
    resolution: int,
) -> None:
    def scene(waiting: list[tuple[int, int, int]], number: int) -> Scene:
        result = Scene(rack(2, cpus=8))
        for place, (minutes, cpus) in enumerate(running):
            result.runs(place, f"n{place % 2 + 1}", minutes, cpus_per_task=cpus, **SMALL)
        for count, (nodes, minutes, cpus) in enumerate(waiting, number):
            more: dict[str, Any] = {"cpus_per_task": 2 * cpus, **SMALL}
            result.waits(count, nodes, minutes, priority=100 - count, **more)
        return result

    parameters = {"bf_window": window, "bf_resolution": resolution}
    whole = scene([first, *behind], 10).backfill(**parameters)
    if 10 not in whole.starts:
        return
    _, minutes, cpus = first
    rest = scene(behind, 11)
    rest.runs(10, whole.starts[10], minutes, since=0, cpus_per_task=2 * cpus, **SMALL)
    after = rest.backfill(**parameters)
    assert whole.starts == {10: whole.starts[10], **after.starts}
    assert whole.planned == after.planned
