"""Likely start of a job: random run times, one simulated run, and the range."""

from __future__ import annotations

from random import Random

import pytest

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.scheduling.event_loop import EventScheduler, SimulatedStart, simulate_forward
from fairbank.scheduling.explain.answer import MIN_RUNS, EarlierStart, NoStartRange, StartRange
from fairbank.scheduling.explain.explanation import explain_on_nodes
from fairbank.scheduling.explain.run_times import (
    ENOUGH,
    OF_EVERYBODY,
    REMEMBERED,
    RunTimeHistory,
    RunTimeRatios,
    RunTimeSampler,
)
from fairbank.scheduling.explain.start_range import (
    SimulatedRuns,
    affordable_passes,
    start_range,
    start_range_on_nodes,
    typical_starts,
)
from fairbank.scheduling.machines.node_snapshot import copy_snapshot
from fairbank.scheduling.machines.nodes import PreemptBy, Preemption, QosRules
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes
from tests.scheduling.clusters import rack
from tests.scheduling.scenes import NOW, OneEach, Scene

HOUR = 3_600


def known(**ratios: list[float]) -> RunTimeHistory[str]:
    history: RunTimeHistory[str] = RunTimeHistory()
    for user, some in ratios.items():
        for ratio in some:
            history.add(user, round(ratio * 1_000), 1_000)
    return history


def test_last_ratios_are_kept_in_order() -> None:
    ratios = RunTimeRatios(3)
    for ratio in (0.5, 0.9, 0.1, 0.5, 0.7):
        ratios.add(ratio)
    assert ratios.in_order == [0.1, 0.5, 0.7]
    assert len(ratios) == 3


def test_user_with_little_history_gets_the_run_times_of_all() -> None:
    history = known(ann=[0.2] * ENOUGH, bob=[0.9] * (ENOUGH - 1))
    assert history.ratios("ann") == [0.2] * ENOUGH
    assert (
        history.ratios("bob") == history.ratios("nobody") == [0.2] * ENOUGH + [0.9] * (ENOUGH - 1)
    )
    assert known().ratios("ann") == [1.0]
    assert len(known(ann=[0.5] * 2_000).ratios("ann")) == REMEMBERED
    assert len(known(ann=[0.5] * 2_000).ratios("bob")) == OF_EVERYBODY


def test_copy_leaves_the_original_unchanged() -> None:
    history = known(ann=[0.2] * ENOUGH)
    other = history.copy()
    other.add("ann", 1, 1)
    assert history.ratios("ann") == [0.2] * ENOUGH


def test_job_lasts_a_ratio_of_its_user_times_its_limit() -> None:
    history = known(ann=[0.1, 0.2, 0.3, 0.4, 0.5])
    drawn = {RunTimeSampler(history, Random(seed)).run_time("ann", 1_000) for seed in range(100)}
    assert drawn == {100, 200, 300, 400, 500}


def test_job_that_runs_lasts_longer_than_it_has() -> None:
    history = known(ann=[0.1, 0.2, 0.3, 0.4, 0.5])
    drawn = {
        RunTimeSampler(history, Random(seed)).run_time("ann", 1_000, 300) for seed in range(100)
    }
    assert drawn == {400, 500}
    beyond = [
        RunTimeSampler(history, Random(seed)).run_time("ann", 1_000, 600) for seed in range(100)
    ]
    assert min(beyond) > 600
    assert max(beyond) <= 1_000
    assert RunTimeSampler(history, Random(1)).run_time("ann", 1_000, 1_200) == 1_201


def test_jobs_of_one_user_are_short_or_long_together() -> None:
    history = known(
        ann=[step / 100 for step in range(100)], bob=[step / 100 for step in range(100)]
    )
    alike = 0
    for seed in range(50):
        luck = RunTimeSampler(history, Random(seed))
        assert luck.run_time("ann", 1_000) == luck.run_time("ann", 1_000)
        alike += luck.run_time("ann", 1_000) == luck.run_time("bob", 1_000)
    assert alike < 5


def test_with_all_time_limits_used_up_a_job_starts_when_it_is_planned() -> None:
    scene = (
        Scene(rack(8))
        .runs(1, "n[7-8]", 180)
        .waits(2, 8, minutes=600, priority=9)
        .waits(3, 4, minutes=240)
    )
    plan = {
        reservation.job.number: reservation.at for reservation in scene.both().plan.reservations
    }
    snapshot = scene.snapshot
    for number in (2, 3):
        came = simulate_forward(
            copy_snapshot(snapshot),
            EventScheduler(lambda there, now: run_passes(there, SchedulerParameters(), now)),
            NOW,
            number,
        )
        assert came.at == plan[number]


def test_simulated_run_ends_when_no_job_waits() -> None:
    snapshot = Scene(rack(1)).waits(1, held="JobHeldUser").snapshot
    assert simulate_forward(
        snapshot,
        EventScheduler(lambda there, now: run_passes(there, SchedulerParameters(), now)),
        NOW,
        1,
    ) == SimulatedStart(None, 1)


def test_range_leaves_out_a_tenth_at_each_end() -> None:
    starts = iter(range(100))
    assert start_range(lambda random, most: SimulatedStart(next(starts), 1)) == StartRange(
        9, 49, 89, 100, 100
    )
    assert start_range(lambda random, most: SimulatedStart(None, 1)) is NoStartRange.NO_START
    assert start_range(lambda random, most: SimulatedStart(None, most)) is NoStartRange.TOO_FAR
    starts = iter(range(100))
    some = start_range(
        lambda random, most: SimulatedStart(at if (at := next(starts)) < 50 else None, 1)
    )
    assert some == StartRange(9, 49, None, 100, 50)


def test_long_simulated_runs_are_fewer() -> None:
    expected = start_range(lambda random, most: SimulatedStart(5, 400), passes=20_000)
    assert expected == StartRange(5, 5, 5, 50, 50)
    expected = start_range(lambda random, most: SimulatedStart(5, most), passes=1)
    assert expected == StartRange(5, 5, 5, MIN_RUNS, MIN_RUNS)


def short_and_long() -> Scene:
    """Return a node whose job has run for an hour and may run for nine more, and a job that waits
    for it.
    """
    scene = Scene(rack(1)).runs(1, "n1", 540, since=60, user="ann")
    return scene.waits(2, minutes=60, user="bob", priority=9).waits(3, minutes=60, user="bob")


def test_range_on_nodes_uses_the_history_of_users() -> None:
    runs = SimulatedRuns(known(ann=[0.2, 0.3, 0.4, 0.5, 0.6], bob=[0.5] * ENOUGH))
    scene = short_and_long()
    plan = scene.both().plan
    first = start_range_on_nodes(scene.snapshot, SchedulerParameters(), runs, 2, NOW)
    assert first == StartRange(NOW + HOUR, NOW + 3 * HOUR, NOW + 5 * HOUR, 100, 100)
    behind = start_range_on_nodes(scene.snapshot, SchedulerParameters(), runs, 3, NOW)
    assert behind == StartRange(
        NOW + HOUR + 1_800, NOW + 3 * HOUR + 1_800, NOW + 5 * HOUR + 1_800, 100, 100
    )
    assert [reservation.at for reservation in plan.reservations] == [
        NOW + 9 * HOUR,
        NOW + 10 * HOUR,
    ]
    assert start_range_on_nodes(scene.snapshot, SchedulerParameters(), runs, 3, NOW) == behind
    assert scene.both().plan == plan


@pytest.mark.parametrize("typical", [NOW, NOW + 9 * HOUR])
def test_typical_start_does_not_change_the_range(typical: int) -> None:
    """Eight of ten runs start within it, wherever the start is that `queue` shows."""
    runs = SimulatedRuns(known(ann=[0.2, 0.3, 0.4, 0.5, 0.6]), typical=typical)
    likely = start_range_on_nodes(short_and_long().snapshot, SchedulerParameters(), runs, 2, NOW)
    assert likely == StartRange(NOW + HOUR, NOW + 3 * HOUR, NOW + 5 * HOUR, 100, 100, typical)
    assert likely.likely == typical


def test_runs_that_are_cut_before_the_start_leave_the_typical_start_alone() -> None:
    """One run may make four times as many passes as each of many."""
    scene = Scene(rack(1))
    for number in range(1, 82):
        scene.waits(number, minutes=60, user="bob", priority=100 - number)
    history = known(bob=[0.5] * ENOUGH)
    typical = typical_starts(scene.snapshot, SchedulerParameters(), history, NOW)[81]
    assert typical == NOW + 80 * HOUR // 2
    ranges = [
        start_range_on_nodes(scene.snapshot, SchedulerParameters(), runs, 81, NOW)
        for runs in (SimulatedRuns(history), SimulatedRuns(history, typical=typical))
    ]
    assert ranges == [NoStartRange.TOO_FAR, StartRange(None, None, None, 1, 1, typical)]


def test_later_jobs_are_left_out_of_simulated_runs() -> None:
    runs = SimulatedRuns(known(ann=[0.2, 0.3, 0.4, 0.5, 0.6], bob=[0.5] * ENOUGH))
    scene = short_and_long()
    with_all = start_range_on_nodes(scene.snapshot, SchedulerParameters(), runs, 3, NOW)
    scene.waits(4, minutes=60, user="ann")
    assert (
        start_range_on_nodes(
            scene.snapshot, SchedulerParameters(), runs, 3, NOW, ahead=frozenset({2})
        )
        == with_all
    )
    without = start_range_on_nodes(
        scene.snapshot, SchedulerParameters(), runs, 3, NOW, ahead=frozenset()
    )
    assert without == StartRange(NOW + HOUR, NOW + 3 * HOUR, NOW + 5 * HOUR, 100, 100)


def test_end_of_a_reservation_lets_a_job_start() -> None:
    scene = Scene(rack(1)).reserves("course", "n1", -10, 90).waits(1, minutes=60)
    expected = start_range_on_nodes(
        scene.snapshot, SchedulerParameters(), SimulatedRuns(known()), 1, NOW
    )
    assert isinstance(expected, StartRange)
    assert (expected.earliest, expected.latest) == (NOW + 90 * 60, NOW + 90 * 60)


def test_more_stand_ahead_the_fewer_passes_are_made() -> None:
    made = [affordable_passes(ahead) for ahead in (0, 50, 500, 10**6)]
    assert made == sorted(made, reverse=True)
    assert (made[0], made[-1]) == (1_000, 1)


def test_each_simulated_run_is_reported() -> None:
    seen: list[tuple[int, int]] = []
    start_range(
        lambda random, most: SimulatedStart(5, 1),
        runs=12,
        tick=lambda done, of: seen.append((done, of)),
    )
    assert seen == [(done, 12) for done in range(1, 13)]


def test_job_held_by_a_limit_starts_when_a_counted_job_ends() -> None:
    """Ann may run one job at a time. Her first job ends in an hour; by then Bob's later job has
    taken the node.
    """
    scene = Scene(rack(2)).runs(1, "n1", 60, user="ann").runs(2, "n2", 30, user="eve")
    scene.waits(3, minutes=60, user="ann", priority=9).waits(4, minutes=120, user="bob")
    scene.limits = OneEach("batch", there=frozenset({("batch", "ann"), ("batch", "eve")}))
    assert scene.both().plan.reason(3) == "QOSMaxJobsPerUserLimit"
    assert start_range_on_nodes(
        scene.snapshot, SchedulerParameters(), SimulatedRuns(known()), 3, NOW
    ) == StartRange(NOW + HOUR, NOW + HOUR, NOW + HOUR, 100, 100)
    behind = start_range_on_nodes(
        scene.snapshot, SchedulerParameters(), SimulatedRuns(known()), 3, NOW, ahead=frozenset()
    )
    assert behind == StartRange(NOW + HOUR, NOW + HOUR, NOW + HOUR, 100, 100)


def test_later_job_may_use_up_a_limit_that_another_waits_for() -> None:
    """Ann may run one job at a time. Her long job needs both nodes, one of which is busy for two
    hours. Her short job fits on the node that is free in an hour.
    """
    scene = Scene(rack(2)).runs(1, "n1", 60, user="ann").runs(2, "n2", 120, user="eve")
    scene.waits(3, 2, minutes=60, user="ann", priority=9).waits(4, minutes=50, user="ann")
    scene.limits = OneEach("batch", there=frozenset({("batch", "ann"), ("batch", "eve")}))
    expected = start_range_on_nodes(
        scene.snapshot, SchedulerParameters(), SimulatedRuns(known()), 3, NOW, ahead=frozenset()
    )
    assert expected == StartRange(NOW + 2 * HOUR, NOW + 2 * HOUR, NOW + 2 * HOUR, 100, 100)


def test_no_start_range_for_a_limit_that_no_end_lifts() -> None:
    scene = short_and_long()
    scene.limits = OneEach("batch", there=frozenset({("batch", "bob")}))
    assert (
        start_range_on_nodes(scene.snapshot, SchedulerParameters(), SimulatedRuns(known()), 2, NOW)
        is NoStartRange.NO_START
    )


def test_job_that_may_start_later_has_a_range_as_well() -> None:
    """No other job waits at first. A job with a higher priority then has its node until ten minutes
    later.
    """
    scene = (
        Scene(rack(1))
        .runs(1, "n1", 20)
        .waits(2, minutes=50, priority=9)
        .waits(3, minutes=60, eligible=NOW + HOUR)
    )
    explanation = explain_on_nodes(
        scene.snapshot, SchedulerParameters(), 3, NOW, runs=SimulatedRuns(known())
    )
    assert (explanation.code, explanation.position) == ("BeginTime", None)
    assert explanation.likely == StartRange(NOW + 70 * 60, NOW + 70 * 60, NOW + 70 * 60, 100, 100)


@pytest.mark.parametrize(
    ("runs", "missing_range_reason"),
    [(SimulatedRuns(known()), NoStartRange.NOT_QUEUED), (None, None)],
    ids=["asked", "not asked"],
)
def test_held_job_has_no_position(
    runs: SimulatedRuns | None, missing_range_reason: NoStartRange | None
) -> None:
    scene = Scene(rack(1)).waits(1, held="JobHeldUser")
    explanation = explain_on_nodes(scene.snapshot, SchedulerParameters(), 1, NOW, runs=runs)
    assert (explanation.likely, explanation.missing_range_reason) == (None, missing_range_reason)


def test_job_that_may_start_later_and_is_kept_by_a_limit_is_reported() -> None:
    scene = Scene(rack(1)).waits(1, minutes=60, user="bob", eligible=NOW + HOUR)
    scene.limits = OneEach("batch", there=frozenset({("batch", "bob")}))
    explanation = explain_on_nodes(
        scene.snapshot, SchedulerParameters(), 1, NOW, runs=SimulatedRuns(known())
    )
    assert (explanation.code, explanation.position) == ("BeginTime", None)
    assert (explanation.likely, explanation.missing_range_reason) == (None, NoStartRange.NO_START)


def test_change_is_suggested_only_if_it_beats_the_likely_start() -> None:
    """The job on n1 may run for nine more hours; Ann's jobs take 0.2 to 0.6 of their limits, so in
    half of the runs it ends within three. With another partition the job would start when n2 is
    free: in four hours, which beats the reserved start only, or in two.
    """
    runs = SimulatedRuns(known(ann=[0.2, 0.3, 0.4, 0.5, 0.6], bob=[0.5] * ENOUGH))
    for minutes, suggestion in ((240, None), (120, EarlierStart("-p left,right", NOW + 2 * HOUR))):
        left, right = (
            PartitionRules(name=name, nodes=(node,))
            for name, node in (("left", "n1"), ("right", "n2"))
        )
        scene = (
            Scene(rack(2), left, right)
            .runs(1, "n1", 540, since=60, user="ann", partition="left")
            .runs(2, "n2", minutes, user="eve", partition="right")
            .waits(3, minutes=60, user="bob", partitions=("left",))
        )
        result = explain_on_nodes(scene.snapshot, SchedulerParameters(), 3, NOW, runs=runs)
        assert result.likely is not None
        assert result.likely.median == NOW + 3 * HOUR
        assert result.advice is not None
        assert result.advice.suggestion == suggestion


def test_typical_starts_take_the_middle_run_time_of_each_user() -> None:
    """Ann's job has run for one of its ten hours, and takes 0.4 of them: it ends in three. Bob's
    take half: the first 50 minutes. A held job has no start.
    """
    history = known(ann=[0.2, 0.3, 0.4, 0.5, 0.6], bob=[0.5] * ENOUGH)
    snapshot = (
        Scene(rack(1))
        .runs(1, "n1", 540, since=60, user="ann")
        .waits(2, minutes=100, user="bob", priority=9)
        .waits(3, minutes=60, user="bob")
        .waits(4, minutes=60, user="bob", held="JobHeldUser")
        .snapshot
    )
    expected = {2: NOW + 3 * HOUR, 3: NOW + 3 * HOUR + 50 * 60}
    for _ in range(2):  # the snapshot stays as it is
        assert typical_starts(snapshot, SchedulerParameters(), history, NOW) == expected


def test_preemption_happens_in_simulated_runs() -> None:
    """The urgent job takes one idle node and the scavenger's node; the last job waits for both."""
    scene = Scene(rack(2)).runs(1, "n1", 60, user="ann").runs(2, "n2", 600, qos="scavenge")
    scene.preemption = Preemption(
        by=PreemptBy.QOS, qos={"urgent": QosRules(preempts=frozenset({"scavenge"}))}
    )
    scene.waits(3, 2, minutes=30, qos="urgent", priority=9).waits(4, 2, minutes=30)
    late = simulate_forward(
        scene.snapshot,
        EventScheduler(lambda there, now: run_passes(there, SchedulerParameters(), now)),
        NOW,
        4,
    )
    assert late.at == NOW + 90 * 60
