"""Simulation with a bank: refusals, jobs that run without paying behind all that pay, and a
balanced ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.priority.settings import MultifactorSettings, PriorityWeights
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.bank_gate import BankGate
from fairbank.simulator.engine.bank_replay import Fund, Payer
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.grants import Budget, Grants, Unpaid, grants_of
from fairbank.simulator.engine.policies import POLICIES, SimulationPolicy
from fairbank.simulator.engine.simulated_bank import CreditResult, SimulatedBank
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.engine.usage_state import PriorityRules
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import TraceJob

HOUR, DAY = 3_600, 86_400
EASY = POLICIES["easy"]


def job(
    number: int,
    submitted: int,
    processors: int,
    limit: int = HOUR,
    run: int | None = None,
    group: int = 1,
) -> TraceJob:
    return TraceJob(
        number, submitted, processors, limit, limit if run is None else run, 1, number, group, group
    )


class Ran(NamedTuple):
    starts: dict[int, int]
    credit: CreditResult
    lost: int


def granted(
    minutes: dict[int, int],
    unpaid: Unpaid = Unpaid.REFUSE,
    *,
    periods: int = 1,
    staggered: bool = False,
) -> Grants:
    """Return the credit of each group, in SU-minutes."""
    seconds = {Fund(group, "cpu"): 60 * amount for group, amount in minutes.items()}
    return Grants(
        Budget(100, Payer.GROUP, unpaid, periods, staggered), Payer.GROUP, seconds, 0, DAY
    )


def ran(
    jobs: Sequence[TraceJob], grants: Grants, size: int = 4, policy: SimulationPolicy = EASY
) -> Ran:
    till = SimulatedBank(grants, Header(unix_start_time=1_700_000_000))
    clock = SimulationClock(size, BankGate(policy.scheduler(size), till, grants.budget.unpaid))
    starts = {job.number: at for at, begun in clock.run(jobs) for job in begun}
    return Ran(starts, till.close(), clock.lost)


def test_unused_part_of_a_hold_pays_for_the_next_job() -> None:
    """The credit pays one hour of four processors. The first job uses half of its limit; then the
    next job's limit is paid, but not the third's.
    """
    jobs = [job(0, 0, 4, HOUR, HOUR // 2), job(1, 10, 4, HOUR // 2, 60), job(2, 20, 4, HOUR, 60)]
    result = ran(jobs, granted({1: 240}))
    assert result.starts == {0: 0, 1: HOUR // 2}
    (account,) = result.credit.funds
    assert (account.granted, account.charged, account.expired, account.refused) == (
        240,
        124,
        116,
        1,
    )


def test_next_job_starts_when_a_job_is_refused() -> None:
    """The first job in the queue has no credit. The job behind it has, and starts at the second at
    which the first would have started.
    """
    jobs = [job(0, 0, 4), job(1, 10, 4, group=2), job(2, 20, 4)]
    result = ran(jobs, granted({1: 480, 2: 0}))
    assert result.starts == {0: 0, 2: HOUR}
    assert {account.account: account.refused for account in result.credit.funds} == {1: 0, 2: 1}


def test_job_with_no_job_ahead_is_refused_at_once() -> None:
    result = ran([job(0, 0, 4, group=2), job(1, 10, 4)], granted({1: 240, 2: 0}))
    assert result.starts == {1: 10}
    assert result.lost == 0


def test_removed_job_holds_no_processor() -> None:
    """Three of four processors are idle after the refusal and no job waits, so no capacity
    is lost.
    """
    jobs = [job(0, 0, 4, 100), job(1, 10, 3, 100, group=2), job(2, 20, 1, 100)]
    assert ran(jobs, granted({1: 480, 2: 0})).lost == 0


def test_jobs_without_credit_run_last_and_free() -> None:
    """Job 1 has no credit. In its turn it moves behind all waiting jobs, and also behind later jobs
    that pay.
    """
    jobs = [job(0, 0, 4), job(1, 10, 4, group=2), job(2, 20, 4), job(3, HOUR + 10, 4)]
    result = ran(jobs, granted({1: 960, 2: 0}, Unpaid.LAST))
    assert result.starts == {0: 0, 2: HOUR, 3: 2 * HOUR, 1: 3 * HOUR}
    output = [
        (account.account, account.charged, account.unpaid, account.unpaid_minutes)
        for account in result.credit.funds
    ]
    assert output == [(1, 720, 0, 0), (2, 0, 1, 240)]


def test_jobs_without_credit_fill_gaps() -> None:
    jobs = [
        job(0, 0, 3, 2 * HOUR),
        job(1, 10, 1, 60, group=2),
        job(2, 20, 4),
        job(3, 30, 1, 60, group=2),
    ]
    result = ran(jobs, granted({1: 960, 2: 0}, Unpaid.LAST))
    assert result.starts == {0: 0, 1: 10, 3: 70, 2: 2 * HOUR}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_jobs_without_credit_keep_their_queue_order(policy: SimulationPolicy) -> None:
    """Under every policy all jobs run, and no job without credit starts before a waiting job with
    credit.
    """
    jobs = [job(0, 0, 4), *(job(number, number, 4, group=2 - number % 2) for number in range(1, 7))]
    result = ran(jobs, granted({1: 960, 2: 0}, Unpaid.LAST), policy=policy)
    order = sorted(result.starts, key=result.starts.__getitem__)
    assert order == [0, 1, 3, 5, 2, 4, 6]


def test_new_period_brings_new_credit_and_the_old_expires() -> None:
    jobs = [job(0, 0, 4), job(1, HOUR, 4), job(2, DAY // 2, 4, HOUR, 60)]
    result = ran(jobs, granted({1: 480}, periods=2))
    assert result.starts == {0: 0, 2: DAY // 2}
    (account,) = result.credit.funds
    assert (account.granted, account.charged, account.expired, account.refused) == (
        480,
        244,
        236,
        1,
    )


def test_staggered_periods_grant_the_same_credit() -> None:
    """The second of two groups begins in the middle of a period, when a quarter of the time and of
    the credit has passed.
    """
    result = ran([], granted({1: 480, 2: 480}, periods=2, staggered=True))
    assert [account.granted for account in result.credit.funds] == [480, 480]
    late = [job(0, DAY // 4 - 10, 4, 1_800, group=2), job(1, DAY // 4 + 3_600, 4, HOUR, group=2)]
    assert ran(late, granted({1: 480, 2: 480}, periods=2, staggered=True)).starts == {
        0: DAY // 4 - 10,
        1: DAY // 4 + 3_600,
    }
    assert ran(late, granted({1: 480, 2: 476}, periods=2, staggered=True)).starts == {}
    assert ran(late, granted({1: 480, 2: 476}, periods=1)).starts == {
        0: DAY // 4 - 10,
        1: DAY // 4 + 3_600,
    }


def test_remaining_credit_counts_in_slurm_priorities() -> None:
    """Jobs of two groups wait. They differ only in their remaining credit, whose periods end at
    different times.
    """
    ranking = PriorityRules(
        settings=MultifactorSettings(weights=PriorityWeights()), site_weight=1_000_000
    )
    policy = SimulationPolicy(
        "credit",
        "",
        lambda processors: SlurmScheduler(SchedulerParameters(bf_interval=-1), ranking, processors),
    )
    grants = granted({1: 2_400, 2: 2_400, 3: 0}, Unpaid.LAST, periods=2, staggered=True)
    spent = [job(0, 0, 4, 2 * HOUR, group=1)]
    waiting = [job(1, 100, 4, HOUR, group=1), job(2, 200, 4, HOUR, group=2)]
    assert ran([*spent, *waiting], grants, policy=policy).starts == {0: 0, 2: 2 * HOUR, 1: 3 * HOUR}
    in_turn = SimulationPolicy(
        "turn",
        "",
        lambda processors: SlurmScheduler(
            SchedulerParameters(bf_interval=-1),
            PriorityRules(settings=MultifactorSettings()),
            processors,
        ),
    )
    assert ran([*spent, *waiting], grants, policy=in_turn).starts == {
        0: 0,
        1: 2 * HOUR,
        2: 3 * HOUR,
    }


drawn_jobs = st.tuples(
    st.integers(0, 600),
    st.integers(1, 4),
    st.integers(60, 4_000),
    st.integers(1, 60),
    st.integers(1, 3),
)
"""The gap since the one before, processors, limit, sixtieths of it that it runs, and group."""
workloads = st.lists(drawn_jobs, min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    workloads,
    st.sampled_from(list(POLICIES)),
    st.integers(0, 130),
    st.integers(1, 4),
    st.sampled_from(Unpaid),
    st.booleans(),
)
def test_every_job_runs_or_is_refused_and_the_ledger_balances(
    drawn: list[tuple[int, int, int, int, int]],
    name: str,
    percent: int,
    periods: int,
    unpaid: Unpaid,
    staggered: bool,
) -> None:
    """`close` audits the ledger. With enough credit for every hold at once, the starts equal those
    without a bank.
    """
    at, jobs = 0, []
    for number, (gap, processors, limit, part, group) in enumerate(drawn):
        at += gap
        jobs.append(job(number, at, processors, limit, max(1, limit * part // 60), group))
    budget = Budget(percent, None, unpaid, periods, staggered)
    result = ran(jobs, grants_of(budget, jobs, Header()), policy=POLICIES[name])
    refused, free = (
        sum(getattr(account, what) for account in result.credit.funds)
        for what in ("refused", "unpaid")
    )
    assert len(result.starts) + refused == len(jobs)
    assert not (refused if unpaid is Unpaid.LAST else free)
    costs = sum(-(-job.processors * job.run // 60) for job in jobs if job.number in result.starts)
    charged, for_nothing = (
        sum(getattr(account, what) for account in result.credit.funds)
        for what in ("charged", "unpaid_minutes")
    )
    assert charged + for_nothing == costs
    assert all(
        account.granted == account.charged + account.expired for account in result.credit.funds
    )
    rich = ran(
        jobs, grants_of(Budget(100_000, None, unpaid), jobs, Header()), policy=POLICIES[name]
    )
    clock = SimulationClock(4, POLICIES[name].scheduler(4))
    if not sum(account.refused + account.unpaid for account in rich.credit.funds):
        assert rich.starts == {job.number: at for at, begun in clock.run(jobs) for job in begun}
        assert rich.lost == clock.lost
