"""Simulation of a workload under several policies, one after the other. Each reads the workload
again, and only the start of each job is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairbank.core.errors import InvalidInput, list_some
from fairbank.core.progress import StageProgress
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.engine.simulation import (
    SimulationPlan,
    SimulationResult,
    Tick,
    check_has_bank,
    simulate,
    with_ticks,
)
from fairbank.simulator.results.delivered_shares import AccountSearch, shares_by_number
from fairbank.simulator.traces.fast_reader import Extent, FastTrace, Source
from fairbank.simulator.traces.workload import Workload, size_of

if TYPE_CHECKING:
    from fairbank.simulator.engine.grants import Budget
    from fairbank.simulator.engine.usage_state import ShareAccounts


def simulate_each(
    source: Source,
    policies: Sequence[SimulationPolicy],
    plan: SimulationPlan,
    *,
    holdings: Mapping[str, int] | None = None,
    budget: Budget | None = None,
    progress: StageProgress | None = None,
) -> list[SimulationResult]:
    """Return the result of each policy. With a `budget` the bank grants it before, and its payers
    have shares as they have credit, unless `holdings` are given.

    Raises InvalidInput as `simulate` does.

    Args:
        source: opens the workload.
        policies: each with a name of its own.
        plan: processors and measures.
        holdings: shares of the plan, by name or number of the account.
        budget: credit to grant.
        progress: called while jobs are read.
    """
    for policy in policies:
        check_has_bank(policy, has_bank=budget is not None)
    if budget is not None:
        plan = add_grants(source, plan, budget, holdings, progress)
    outcomes = []
    for policy in policies:
        with source() as (trace, extent):
            if len(policies) > 1:
                check_reopens(extent, "name one --policy, or a file rather than a pipe")
            tick = progress and ticking(policy.name, extent, progress)
            outcomes.append(simulate_policy(trace, policy, plan, holdings, tick))
            check_shares(outcomes[-1], holdings)
    return outcomes


def simulate_policy(
    trace: FastTrace,
    policy: SimulationPolicy,
    plan: SimulationPlan,
    holdings: Mapping[str, int] | None,
    tick: Tick | None,
) -> SimulationResult:
    """Return the result of one policy, with accounts by name.

    Args:
        trace: the workload, which is read to its end.
        policy: policy to simulate; one with fair share uses the shares.
        plan: processors and measures.
        holdings: shares by name or number of the account; None: those of the plan.
        tick: called with the number of jobs read from time to time; None: nothing is reported.

    Raises:
        InvalidInput: as `simulate`, or Slurm would refuse the shares.
    """
    if not holdings:
        return _called(simulate(trace, policy, plan, tick), trace, plan)
    shares = _shares(trace, plan, holdings)
    if policy.with_shares is not None:
        policy = policy.with_shares(_entitled(shares, plan))._replace(remarks=policy.remarks)
    sought = AccountSearch(holdings, shares, unknown=-1 if plan.grants is None else 0)
    trace, plan = (
        trace._replace(jobs=sought.among(trace.jobs, by_group=plan.by_group)),
        plan._replace(shares=shares),
    )
    return _called(simulate(trace, policy, plan, tick), trace, plan)._replace(
        unmatched_accounts=sought.missing()
    )


def _entitled(shares: Mapping[int, int], plan: SimulationPlan) -> ShareAccounts:
    """Return the accounts of the shares. Raises InvalidInput for shares that Slurm would refuse."""
    # Imported here: only policies with fair share need NumPy.
    from fairbank.simulator.engine.usage_state import ShareAccounts  # noqa: PLC0415

    entitled = ShareAccounts(shares, plan.by_group)
    entitled.check()
    return entitled


def check_shares(outcome: SimulationResult, holdings: Mapping[str, int] | None) -> None:
    """Raise InvalidInput if the trace has none of the accounts with shares."""
    if holdings and outcome.lines and len(outcome.unmatched_accounts) == len(holdings):
        several = list_some(outcome.unmatched_accounts)
        remedy = "name accounts as the trace does; --by tells whether they are users or groups"
        raise InvalidInput(
            f"no account of the shares is in this trace: {several}", field="shares", remedy=remedy
        )


def _shares(trace: FastTrace, plan: SimulationPlan, holdings: Mapping[str, int]) -> dict[int, int]:
    """Return the shares by the numbers of the trace.

    Users and groups both learn the names, whichever the shares belong to: so numbers are the same
    at each reading.
    """
    people = trace.names
    by_user = shares_by_number(holdings, people and people.users)
    by_group = shares_by_number(holdings, people and people.groups)
    return by_group if plan.by_group else by_user


def add_grants(
    source: Source,
    plan: SimulationPlan,
    budget: Budget,
    holdings: Mapping[str, int] | None = None,
    progress: StageProgress | None = None,
) -> SimulationPlan:
    """Return the plan with the grants, for which the trace is read once more.

    Args:
        source: opens the workload, which must be possible more than once.
        plan: the plan without grants; its shares become those of the grants.
        budget: part of the recorded use that is granted.
        holdings: shares by name or number of the account, which need the numbers of the trace.
        progress: called while jobs are read; None: nothing is reported.

    Raises:
        InvalidInput: the workload is a pipe.
    """
    # Imported here: only simulations with grants need the bank.
    from fairbank.simulator.engine.bank_replay import Payer  # noqa: PLC0415
    from fairbank.simulator.engine.grants import grants_of, holdings_of  # noqa: PLC0415

    with source() as (trace, extent):
        check_reopens(extent, "name a file", ", and grants are a part of what is used")
        if holdings:
            _shares(trace, plan, holdings)
        jobs = Workload(trace.jobs, size_of(trace, plan.processors))
        grants = grants_of(
            budget, with_ticks(jobs, progress and ticking("grants", extent, progress)), trace.header
        )
    return plan._replace(
        grants=grants, shares=holdings_of(grants) or None, by_group=grants.payer is Payer.GROUP
    )


def _called(outcome: SimulationResult, trace: FastTrace, plan: SimulationPlan) -> SimulationResult:
    """Return the result with accounts by name."""
    if trace.names is None:
        return outcome
    names = trace.names.groups if plan.by_group else trace.names.users
    delivered = [row._replace(account=names.name(int(row.account))) for row in outcome.delivered]
    credit = outcome.credit
    if credit is not None:
        funds = [row._replace(account=names.name(int(row.account))) for row in credit.funds]
        credit = credit._replace(funds=funds)
    return outcome._replace(delivered=delivered, credit=credit)


def check_reopens(extent: Extent, remedy: str, reason: str = "") -> None:
    """Raise InvalidInput if the source opens its workload only once.

    Args:
        remedy: advice for the error.
        reason: rest of the sentence of the error, from a comma on; empty without one.
    """
    if extent.once:
        raise InvalidInput(f"a pipe can be read only once{reason}", field="FILE", remedy=remedy)


def ticking(name: str, extent: Extent, progress: StageProgress) -> Tick:
    """Return a function that reports the progress of a stage.

    Args:
        extent: extent of the workload, which estimates the total number of jobs.
        progress: called with the name, the number of jobs read, and the total.
    """

    def tick(jobs: int) -> None:
        progress(name, jobs, extent.about(jobs))

    return tick
