"""Measures of schedules, compared with values computed by hand."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.simulator.engine.clock import JobStarts, SimulationClock
from fairbank.simulator.engine.policies import policy_named
from fairbank.simulator.results.delivered_shares import (
    WINDOW,
    DeliveryMeter,
    read_holdings,
    shares_by_number,
)
from fairbank.simulator.results.measures import (
    FairStarts,
    MeasureAccumulator,
    ScheduleMeasures,
    in_columns,
    jain,
)
from fairbank.simulator.traces.workload import TraceJob


def job(
    number: int, submitted: int, run: int, processors: int, user: int = 1, limit: int | None = None
) -> TraceJob:
    return TraceJob(number, submitted, processors, limit or run, run, 1, number, user, user)


def measured(size: int, policy: str, *jobs: TraceJob) -> tuple[ScheduleMeasures, list[JobStarts]]:
    clock, measures = (
        SimulationClock(size, policy_named(policy).scheduler(size)),
        MeasureAccumulator(),
    )
    moments = list(clock.run(jobs))
    measures.take(in_columns(moments))
    result = measures.figures(size, clock.lost)
    assert result is not None
    return result, moments


# Four processors. One job takes three of them for 100 s; one that came at 20 s wants all four; one
# that came at 30 s wants one for 50 s.
THREE = (job(0, 0, 100, 3, user=1), job(1, 20, 40, 4, user=2), job(2, 30, 50, 1, user=3))


def test_first_come_first_served_on_paper() -> None:
    """The second job starts at 100, the third at 140. From 20 to 100 one processor is idle, and
    from 140 on no job waits.
    """
    result, _ = measured(4, "fcfs", *THREE)
    assert (result.mean_wait, result.median_wait, result.longest_wait) == (
        (0 + 80 + 110) / 3,
        80,
        110,
    )
    assert result.mean_turnaround == (100 + 120 + 160) / 3
    assert result.mean_slowdown == pytest.approx((1 + 120 / 40 + 160 / 50) / 3)
    assert result.makespan == 190
    assert result.utilisation == (300 + 160 + 50) / (4 * 190)
    assert result.loss_of_capacity == 80 / (4 * 190)


def test_backfill_on_paper() -> None:
    """The third job fits beside the first and ends before it: from 30 to 80 none is idle."""
    result, _ = measured(4, "easy", *THREE)
    assert (result.mean_wait, result.makespan) == (80 / 3, 140)
    assert result.loss_of_capacity == (10 + 20) / (4 * 140)


def test_lost_capacity_is_at_most_the_waiting_demand() -> None:
    """A waiting job needs one of eight idle processors, but first come, first served does not start
    it.
    """
    result, _ = measured(10, "fcfs", job(0, 0, 10, 2), job(1, 1, 10, 10), job(2, 2, 10, 1))
    assert result.loss_of_capacity == (9 * 8 + 10 * 0 + 10 * 0) / (10 * result.makespan)


def test_short_run_counts_as_ten_seconds() -> None:
    result, _ = measured(1, "fcfs", job(0, 0, 90, 1), job(1, 0, 1, 1))
    assert result.mean_slowdown == (1 + 91 / 10) / 2


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ([3.0, 3.0, 3.0], 1.0),
        ([1.0, 0.0, 0.0, 0.0], 0.25),
        ([1.0], 1.0),
        ([0.3], 1.0),
        ([0.0], None),
        ([], None),
        ([0.0, 0.0], None),
    ],
)
def test_jains_index(values: list[float], index: float | None) -> None:
    assert jain(values) == index


def test_fair_start_ignores_later_jobs() -> None:
    """The second job needs all four processors at 100, when the first must have ended. The first
    ends at 50 already, but then a later job runs until 90.
    """
    jobs = (job(0, 0, 50, 3, limit=100), job(1, 10, 10, 4), job(2, 20, 70, 1))
    clock = SimulationClock(4, policy_named("easy").scheduler(4))
    fair = FairStarts(clock, 1)
    for moment in clock.run(jobs, fair.record_arrival):
        fair.take(moment)
    misses = fair.late_starts()
    assert misses is not None
    assert (misses.jobs, misses.part, misses.mean_delay) == (3, 1 / 3, 40)


# --- shares ---


def delivered(holdings: dict[int, int], *moments: JobStarts) -> DeliveryMeter:
    sharing = DeliveryMeter(holdings, lambda job: job.user)
    for moment in moments:
        sharing.take(moment)
    return sharing


def test_account_that_gets_its_share_has_no_share_error() -> None:
    sharing = delivered({1: 3, 2: 1}, (0, [job(0, 0, 100, 3, user=1), job(1, 0, 100, 1, user=2)]))
    assert (sharing.share_error(), sharing.jain()) == (0, 1)


def test_share_error_is_usage_beyond_the_share() -> None:
    """Each account is due half. One gets three quarters; in the second week the other gets all,
    three times as much in total.
    """
    even = {1: 50, 2: 50}
    first = (0, [job(0, 0, 100, 3, user=1), job(1, 0, 100, 1, user=2)])
    sharing = delivered(even, first)
    assert (sharing.share_error(), sharing.jain()) == (
        0.25,
        (0.75 + 0.25) ** 2 / (2 * (0.75**2 + 0.25**2)),
    )
    sharing = delivered(even, first, (WINDOW, [job(2, 0, 1_200, 1, user=2)]))
    assert sharing.share_error() == (400 * 0.25 + 1_200 * 0.5) / 1_600
    assert sharing.jain() == pytest.approx((400 * 0.8 + 1_200 * 0.5) / 1_600)
    assert [(share.account, share.delivered, share.due) for share in sharing.delivered()] == [
        (1, 300 / 1_600, 0.5),
        (2, 1_300 / 1_600, 0.5),
    ]


def test_run_over_the_end_of_a_week_is_delivered_in_both() -> None:
    sharing = delivered({1: 1}, (WINDOW - 30, [job(0, 0, 100, 2, user=1)]))
    assert [(week.begin, week.delivered) for week in sharing.weeks()] == [(0, 60), (WINDOW, 140)]


def test_account_without_shares_is_entitled_to_nothing() -> None:
    sharing = delivered({1: 1, 2: 1}, (0, [job(0, 0, 10, 1, user=3)]))
    assert (sharing.share_error(), sharing.jain()) == (1.0, None)


def test_nothing_delivered_is_nothing_to_measure() -> None:
    sharing = delivered({1: 1})
    assert (sharing.share_error(), sharing.jain(), sharing.weeks()) == (None, None, [])


def test_file_of_shares_has_names_or_numbers() -> None:
    assert read_holdings(["account,shares", "astro, 30", "", "007,5"]) == {"astro": 30, "7": 5}
    assert shares_by_number(read_holdings(["12,30", "7,5"]), None) == {12: 30, 7: 5}
    assert read_holdings(["User, Shares", "shares,5"]) == {"shares": 5}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["astro,-1"], "line 1"),
        (["a,1", "b"], "line 2"),
        (["a,1", "b,c"], "line 2"),
        (["a,1", "-3,4"], "line 2"),
        (["a,1", "a,2"], "account a is there twice"),
        (["7,1", "007,2"], "account 7 is there twice"),
        (["a,0"], "no account has shares"),
        (
            ["shares,account", "3,12"],
            "line 1: invalid header 'shares,account', expected account,shares",
        ),
        (["account", "3"], "line 1: invalid header 'account'"),
        (["astro,sixty"], "line 1: invalid header 'astro,sixty'"),
        (["account,shares", "group,shares"], "line 2"),
        ([], "no account has shares"),
    ],
)
def test_shares_that_cannot_be_are_reported(lines: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_holdings(lines)
