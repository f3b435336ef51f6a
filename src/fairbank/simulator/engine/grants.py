"""Credit that projects get before a simulation: a part of what their jobs use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.requests import Open
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.simulator.engine.bank_replay import Fund, Payer, payer_of, resource_of
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import TraceJob


class Unpaid(Enum):
    """Treatment of a job that has no credit when it would start."""

    REFUSE = "refuse"
    LAST = "last"


class Budget(NamedTuple):
    """Part of the use of each payer that is granted.

    `percent` of the use is granted in `periods` consecutive allocations. `staggered`: the periods
    of payers begin at different times. `payer` None: groups if there are any, else users.
    """

    percent: int
    payer: Payer | None = None
    unpaid: Unpaid = Unpaid.REFUSE
    periods: int = 1
    staggered: bool = False


class Grants(NamedTuple):
    """Budget, and the use that it is a part of: processor-seconds of each fund, from the first
    submission until after the last. Times are seconds of the trace.
    """

    budget: Budget
    payer: Payer
    seconds: Mapping[Fund, int]
    begin: int
    end: int


class GrantTerms(NamedTuple):
    """Allocation to open, and its due end. The last of a fund stays open until all jobs ran."""

    request: Open
    due: int


def fund_of(job: TraceJob, payer: Payer, header: Header) -> Fund:
    """Return the fund that pays for a job.

    Args:
        job: the job, with its user and its group.
        payer: which of both pays.
        header: header of the trace, which names the partition of the job.
    """
    return Fund(payer_of(job, payer), resource_of(job, header))


def grants_of(budget: Budget, jobs: Iterable[TraceJob], header: Header) -> Grants:
    """Sum what the jobs use in processor-seconds, by fund.

    Args:
        budget: part of the use that is granted; its payer, if it has none, follows from the jobs.
        jobs: all jobs of the trace in the order of submission.
        header: header of the trace, which names the partitions.
    """
    by: dict[Payer, dict[Fund, int]] = {
        payer: {} for payer in Payer if budget.payer in (payer, None)
    }
    begin = end = -1
    groups = False
    for job in jobs:
        groups = groups or job.group > 0
        for payer, seconds in by.items():
            fund = fund_of(job, payer, header)
            seconds[fund] = seconds.get(fund, 0) + job.processors * job.run
        begin, end = job.submitted if begin < 0 else begin, job.submitted + 1
    chosen = budget.payer or (Payer.GROUP if groups else Payer.USER)
    return Grants(budget, chosen, by[chosen], max(begin, 0), max(end, 1))


def holdings_of(grants: Grants) -> dict[int, int]:
    """Return the grant of each payer, as shares."""
    shares: dict[int, int] = {}
    for fund, seconds in grants.seconds.items():
        shares[fund.payer] = shares.get(fund.payer, 0) + seconds
    return shares


def terms_of(grants: Grants, projects: Mapping[int, int], zero: int) -> Iterator[GrantTerms]:
    """Yield the allocations of all funds.

    Args:
        grants: budget and use.
        projects: project of each payer.
        zero: second since 1970 in which the trace begins.
    """
    positions = {payer: turn for turn, payer in enumerate(sorted(projects))}
    begin, lasts, periods = grants.begin, grants.end - grants.begin, grants.budget.periods
    for fund, seconds in sorted(grants.seconds.items()):
        # With staggered periods the first period of a payer is shorter by turn / of.
        turn, of = positions[fund.payer] if grants.budget.staggered else 0, len(positions)
        ends = [
            begin + lasts * (part * of - turn) // (periods * of)
            for part in range(1, periods + (turn > 0) + 1)
        ]
        minutes = min(seconds * grants.budget.percent // 6_000, AMOUNT_MAX)
        start, granted = begin, 0
        for number, due in enumerate(ends):
            last = number == len(ends) - 1
            # Credit is proportional to time, so that each part of a period has the same.
            until = minutes if last else minutes * (min(due, grants.end) - begin) // lasts
            if due > start:
                request = Open(
                    terms=AllocationTerms(
                        project=projects[fund.payer],
                        resource=fund.resource,
                        category="simulated",
                        start=Instant(zero + start),
                        end=LAST_INSTANT if last else Instant(zero + due),
                    ),
                    deposit=SuMinutes(until - granted),
                )
                yield GrantTerms(request, zero + due)
                start, granted = due, until
