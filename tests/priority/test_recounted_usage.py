"""Usage computed from job records alone, compared with the same history tick by tick. Source:
docs/reference/slurm-rules.md, "Usage".
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.time import DAY
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.columns import Ints, Long
from fairbank.priority.fairshare.decay import Decay, Reset, fading
from fairbank.priority.fairshare.usage_ticks import ChargedRows, Rules, apply_tick, end_jobs
from tests.priority.accounts import ALICE, BOB, CAROL, NAMES, PARENT, PAYERS, ROOT, job, together
from tests.priority.double_billing import is_charged, usage_factors
from tests.priority.recomputed_usage import TickPeriod, recompute_usage, zero_usage
from tests.support.long_doubles import AS_ON_X86_64

NOON = 1_000_000_000
TICKS = [NOON + 300 * number for number in range(12)]
WEEK, NEVER = Rules(Decay()), Rules(fading(0, Reset.NONE))
LAX = Rules(fading(0, Reset.NONE), limits=False)


EMPTY = TickPeriod(zero_usage(PAYERS, len(NAMES)))


def gone(jobs: ChargedJobs) -> Ints:
    return jobs.end


def test_usage_from_records_equals_usage_from_ticks() -> None:
    records = together(
        job(ALICE, NOON + 10, NOON + 700, cpus=4),
        job(BOB, NOON + 400),
        job(CAROL, NOON + 310, NOON + 500, cpus=8),
    )
    running = records._replace(end=np.zeros(3, np.int64))

    def only(*rows: int) -> ChargedJobs:
        return running.only(np.array(rows))

    usage = apply_tick(
        zero_usage(PAYERS, len(NAMES)),
        running.only(np.zeros(3, bool)),
        PAYERS,
        WEEK,
        last=0,
        now=NOON,
    )
    usage = apply_tick(usage, only(0), PAYERS, WEEK, last=NOON, now=NOON + 300)
    usage = end_jobs(
        usage, records.only(np.array([2])), PAYERS, WEEK, last=NOON + 300, now=NOON + 500
    )
    usage = apply_tick(usage, only(0, 1), PAYERS, WEEK, last=NOON + 300, now=NOON + 600)
    usage = end_jobs(
        usage, records.only(np.array([0])), PAYERS, WEEK, last=NOON + 600, now=NOON + 700
    )
    usage = apply_tick(usage, only(1), PAYERS, WEEK, last=NOON + 600, now=NOON + 900)
    recounted_usage = recompute_usage(records, gone(records), TICKS[:4], PAYERS, WEEK, EMPTY)
    assert [figure.tolist() for figure in recounted_usage.associations] == [
        figure.tolist() for figure in usage.associations
    ]


def test_every_second_is_charged_once_whatever_the_ticks() -> None:
    records = together(job(ALICE, NOON + 10, NOON + 777, cpus=4), job(BOB, NOON + 301, NOON + 302))
    for ticks in ([NOON + 900], TICKS[:4], range(NOON, NOON + 901, 7), [NOON + 777, NOON + 778]):
        usage = recompute_usage(records, gone(records), ticks, PAYERS, NEVER, EMPTY)
        assert float(usage.associations.raw[ROOT]) == 4 * 767 + 1


def test_without_enforced_limits_last_interval_of_job_is_lost() -> None:
    records = job(ALICE, NOON + 10, NOON + 777)
    assert (
        float(
            recompute_usage(records, gone(records), TICKS[:4], PAYERS, LAX, EMPTY).associations.raw[
                ROOT
            ]
        )
        == 590
    )


def test_job_that_ends_at_a_tick_is_still_charged_by_it() -> None:
    records = job(ALICE, NOON, NOON + 900, cpus=4)
    assert (
        float(
            recompute_usage(
                records, gone(records), TICKS[:4], PAYERS, WEEK, EMPTY
            ).associations.raw[ALICE]
        )
        == 3597.525990868918
    )
    assert float(
        recompute_usage(records, gone(records), TICKS[:7], PAYERS, WEEK, EMPTY).associations.raw[
            ALICE
        ]
    ) == pytest.approx(3593.817952352436, rel=2e-16)


def test_each_run_of_a_requeued_job_stays_charged() -> None:
    runs = together(
        job(ALICE, NOON, NOON + 450, cpus=2), job(ALICE, NOON + 700, NOON + 1000, cpus=2)
    )
    assert float(
        recompute_usage(runs, gone(runs), TICKS, PAYERS, NEVER, EMPTY).associations.raw[ALICE]
    ) == 2 * (450 + 300)


def test_suspended_job_is_charged_although_its_end_is_set_back() -> None:
    paused = job(ALICE, NOON, NOON + 400)  # suspended then, cancelled 900 seconds later
    usage = recompute_usage(paused, np.array([NOON + 1300]), TICKS, PAYERS, NEVER, EMPTY)
    assert (
        float(usage.associations.raw[ALICE]) == 1200
    )  # to the last tick before, and not taken back


@pytest.mark.skipif(not AS_ON_X86_64, reason="long doubles of this host are others")
def test_ends_are_charged_in_order() -> None:
    large, small = (
        2.0**40,
        0.75 * 2.0**-24,
    )  # one small is lost beside the large, two together are not
    before = [job(ALICE, NOON + second, NOON + second + 1, billable=small) for second in (20, 30)]
    for when, more in ((40, 2.0**-23), (10, 0.0)):
        records = together(job(ALICE, NOON + when, NOON + when + 1, billable=large), *before)
        for order in (records, records.only(np.array([2, 1, 0]))):
            assert (
                recompute_usage(
                    order, gone(order), TICKS[:2], PAYERS, NEVER, EMPTY
                ).associations.raw[ALICE]
                - Long(large)
                == more
            )


def test_pending_and_running_jobs_are_recounted() -> None:
    records = together(job(ALICE, 0), job(BOB, NOON + 100), job(CAROL, NOON + 10_000))
    usage = recompute_usage(records, gone(records), TICKS[:3], PAYERS, NEVER, EMPTY)
    assert float(usage.associations.raw[ROOT]) == 500


def test_recount_continues_from_saved_usage() -> None:
    records = together(
        job(ALICE, NOON + 10, NOON + 700, cpus=4),
        job(BOB, NOON + 400, NOON + 2000),
        job(CAROL, NOON + 600, NOON + 600),
    )
    at_once = recompute_usage(records, gone(records), TICKS, PAYERS, WEEK, EMPTY)
    usage = recompute_usage(records, gone(records), TICKS[:3], PAYERS, WEEK, EMPTY)
    usage = recompute_usage(
        records, gone(records), TICKS[3:], PAYERS, WEEK, TickPeriod(usage, TICKS[2])
    )
    assert usage.associations.raw.tolist() == at_once.associations.raw.tolist()


def test_decreasing_ticks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="went back by 300 s"):
        recompute_usage(
            job(ALICE, NOON), np.zeros(1, np.int64), [NOON + 300, NOON], PAYERS, WEEK, EMPTY
        )


@pytest.mark.parametrize(
    ("end", "left"), [(NOON - 1, NOON + 5), (0, NOON - 1), (NOON - 1, NOON - 1)]
)
def test_record_with_end_before_start_is_named(end: int, left: int) -> None:
    records = together(job(ALICE, 0, 5), job(ALICE, NOON, end))
    with pytest.raises(InvalidInput, match="record row 1 ends before it starts"):
        recompute_usage(records, np.array([5, left]), TICKS, PAYERS, WEEK, EMPTY)


def test_job_gone_from_the_queue_has_ended() -> None:
    for end in (0, NOON + 5_000):
        usage = recompute_usage(
            job(ALICE, NOON, end), np.array([NOON + 100]), TICKS, PAYERS, NEVER, EMPTY
        )
        assert float(usage.associations.raw[ROOT]) == 100


def test_reset_clears_usage_before_its_tick() -> None:
    midnight = NOON - NOON % DAY + DAY
    records = together(
        job(ALICE, midnight - 1_000, midnight - 500), job(BOB, midnight - 200, midnight + 400)
    )
    daily = Rules(fading(0, Reset.DAILY))
    ticks = [midnight - 900 + 300 * number for number in range(6)]  # one is at midnight
    seen = recompute_usage(
        records,
        gone(records),
        ticks[:4],
        PAYERS,
        daily,
        TickPeriod(EMPTY.usage, reset=midnight - DAY),
    )
    assert [float(seen.associations.raw[who]) for who in (ROOT, ALICE, BOB)] == [200, 0, 200]
    seen = recompute_usage(
        records, gone(records), ticks, PAYERS, daily, TickPeriod(EMPTY.usage, reset=midnight - DAY)
    )
    assert [float(seen.associations.raw[who]) for who in (ROOT, BOB)] == [600, 600]
    # where nobody knows of a reset, the first tick begins the period
    seen = recompute_usage(records, gone(records), ticks, PAYERS, daily, EMPTY)
    assert float(seen.associations.raw[ROOT]) == 600


@pytest.mark.parametrize(
    ("state", "charges"),
    [
        ({"RUNNING"}, True),
        ({"SUSPENDED"}, True),
        ({"RUNNING", "RESIZING"}, True),
        ({"PENDING"}, False),
        ({"RUNNING", "COMPLETING"}, False),
        ({"RUNNING", "POWER_UP_NODE"}, False),
        ({"PENDING", "REQUEUED"}, False),
        ({"NODE_FAIL"}, False),
    ],
)
def test_tick_charges_running_jobs(state: set[str], charges: bool) -> None:
    assert is_charged(state) is charges


def test_cleared_usage_factor_is_1() -> None:
    assert usage_factors(np.array([0, 1, -1, 2]), np.array([2.0, -1.0, 0.0])).tolist() == [
        2.0,
        1.0,
        1.0,
        0.0,
    ]
    assert usage_factors(np.array([-1]), np.zeros(0)).tolist() == [1.0]


# --- properties ---


@st.composite
def some_records(draw: st.DrawFn) -> ChargedJobs:
    def one() -> ChargedJobs:
        start = draw(st.integers(NOON, NOON + 3000))
        lasts = draw(st.integers(0, 3000))
        who = draw(st.sampled_from([ALICE, BOB, CAROL]))
        return job(who, start, start + lasts, cpus=draw(st.integers(1, 100)))

    return together(*(one() for _ in range(draw(st.integers(1, 6)))))


after = st.lists(st.integers(NOON, NOON + 6000), max_size=12, unique=True).map(
    lambda ticks: [*sorted(ticks), NOON + 6001]
)


@settings(max_examples=30)
@given(some_records(), after)
def test_final_usage_equals_run_time(records: ChargedJobs, ticks: list[int]) -> None:
    usage = recompute_usage(records, gone(records), ticks, PAYERS, NEVER, EMPTY)
    assert float(usage.associations.raw[ROOT]) == float(
        ((records.end - records.start) * records.billable).sum()
    )


@settings(max_examples=30)
@given(some_records(), after)
def test_decay_only_reduces_and_accounts_are_sums_of_children(
    records: ChargedJobs, ticks: list[int]
) -> None:
    faded = recompute_usage(records, gone(records), ticks, PAYERS, WEEK, EMPTY).associations
    plain = recompute_usage(records, gone(records), ticks, PAYERS, NEVER, EMPTY).associations
    assert (faded.raw <= plain.raw).all()
    assert (faded.raw >= 0).all()
    for account in range(len(PARENT)):
        below = faded.raw[account == PARENT]
        if below.size:
            assert float(faded.raw[account]) == pytest.approx(float(below.sum()), rel=1e-15)


@settings(max_examples=50)
@given(some_records(), after, st.permutations(range(7)))
def test_order_of_accounts_changes_nothing(
    records: ChargedJobs, ticks: list[int], order: list[int]
) -> None:
    place = np.array(order)
    parent = np.full(len(PARENT), -1, np.int64)
    parent[place[1:]] = place[PARENT[1:]]
    moved = records._replace(association=place[records.association])
    one = recompute_usage(records, gone(records), ticks, PAYERS, WEEK, EMPTY).associations
    other = recompute_usage(
        moved, gone(moved), ticks, ChargedRows(parent, PAYERS.spared), WEEK, EMPTY
    ).associations
    assert one.raw.tolist() == other.raw[place].tolist()
