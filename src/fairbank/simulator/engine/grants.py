"""What projects are granted before a simulation: a part of what their jobs use, in allocations one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from fairbank.bank.requests import Open
from fairbank.core.time import LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.simulator.engine.bank_replay import Fund, Payer, billed_in
from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.workload import TraceJob


class Unpaid(Enum):
    """What becomes of a job that nobody can pay when it would start."""

    REFUSE = "refuse"
    LAST = "last"


class Budget(NamedTuple):
    """`percent` of what each payer's jobs use is granted, in `periods` allocations one after the other; `staggered`: those of one payer
    begin at other times than those of the next. `payer`: None for groups where there are any, else users."""

    percent: int
    payer: Payer | None = None
    unpaid: Unpaid = Unpaid.REFUSE
    periods: int = 1
    staggered: bool = False


class Grants(NamedTuple):
    """A budget, and what it is a part of: processor-seconds of each fund, from the first submission until after the last. Seconds are
    those of the trace."""

    budget: Budget
    payer: Payer
    seconds: Mapping[Fund, int]
    begin: int
    end: int


class GrantTerms(NamedTuple):
    """An allocation to be opened, and when it is due to end: one that is the last of its fund stays open until all jobs have run."""

    request: Open
    due: int


def payer_of(job: TraceJob, payer: Payer) -> int:
    """The number of the group or user that pays; 0 stands for whoever is unknown."""
    return max(job.group if payer is Payer.GROUP else job.user, 0)


def fund_of(job: TraceJob, payer: Payer, header: Header) -> Fund:
    """Whose credit on which resource a job takes."""
    return Fund(payer_of(job, payer), billed_in(job.partition, header))


def grants_of(budget: Budget, jobs: Iterable[TraceJob], header: Header) -> Grants:
    """Add up what the jobs use."""
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
    """What each payer is granted of the whole, as shares."""
    found: dict[int, int] = {}
    for fund, seconds in grants.seconds.items():
        found[fund.payer] = found.get(fund.payer, 0) + seconds
    return found


def terms_of(grants: Grants, projects: Mapping[int, int], zero: int) -> Iterator[GrantTerms]:
    """The allocations of all funds. `projects` are those of the payers, `zero` the second of 1970 in which the trace begins."""
    turns = {payer: turn for turn, payer in enumerate(sorted(projects))}
    for fund in sorted(grants.seconds):
        late = turns[fund.payer] if grants.budget.staggered else 0
        yield from _one_after_the_other(
            grants, fund, projects[fund.payer], (late, len(turns)), zero
        )


def _one_after_the_other(
    grants: Grants, fund: Fund, project: int, late: tuple[int, int], zero: int
) -> Iterator[GrantTerms]:
    """Credit follows time, so that each part of a period is worth the same. `late`: by which part of a period its first one is short."""
    begin, lasts, periods = grants.begin, grants.end - grants.begin, grants.budget.periods
    minutes = min(grants.seconds[fund] * grants.budget.percent // 6_000, AMOUNT_MAX)
    turn, of = late
    ends = [
        begin + lasts * (part * of - turn) // (periods * of)
        for part in range(1, periods + (turn > 0) + 1)
    ]
    start, granted = begin, 0
    for number, due in enumerate(ends):
        last = number == len(ends) - 1
        until = minutes if last else minutes * (min(due, grants.end) - begin) // lasts
        if due > start:
            request = Open(
                project=project,
                resource=fund.resource,
                category="simulated",
                start=Instant(zero + start),
                end=LAST_INSTANT if last else Instant(zero + due),
                deposit=SuMinutes(until - granted),
            )
            yield GrantTerms(request, zero + due)
            start, granted = due, until
