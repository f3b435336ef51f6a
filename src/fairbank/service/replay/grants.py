"""Before a replay: a project for each payer of the trace, its members and its allocations."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairbank.bank.project import Role
from fairbank.bank.refusals import remedies, sentence
from fairbank.bank.requests import CreateProject, Open, Request, SetMember, SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.core.errors import Conflict, FairbankError
from fairbank.core.time import DAY, LAST_INSTANT, Instant
from fairbank.core.units import AMOUNT_MAX, SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.service.replay.plan import ReplayPlan
from fairbank.simulator.engine.bank_replay import CreditDemand, Fund

_FIRST_GID, _FIRST_UID = 20_000, 100_000


class ReplayPayers(msgspec.Struct, frozen=True):
    """The project of each payer, and the account of each project."""

    projects: dict[int, int]
    accounts: dict[int, str]


def grant(bank: Ledger, demand: CreditDemand, plan: ReplayPlan) -> ReplayPayers:
    """Enter everybody and open the allocations. Raises Conflict for a store that is not empty."""
    with bank.store.reading() as reader:
        if reader.registry().seq:
            raise Conflict("this store is not empty", field="store", remedy="replay into a new one")
    letter = demand.payer.value[0]
    names = {each: f"{letter}{each}" for each in sorted(demand.members)}
    created = _ask(
        bank,
        demand,
        plan,
        [
            CreateProject(gname=name, gid=_FIRST_GID + each, account=name)
            for each, name in names.items()
        ],
    )
    projects = {each: done.project or 0 for each, done in zip(names, created, strict=True)}
    members = [
        SetMember(project=projects[each], uid=uid_of(user), role=Role.MEMBER)
        for each in names
        for user in sorted(demand.members[each])
    ]
    openings = [
        request
        for fund in sorted(demand.seconds)
        for request in _openings(projects[fund.payer], fund, demand, plan)
    ]
    _ask(bank, demand, plan, [*members, *openings])
    return ReplayPayers(projects, {projects[each]: name for each, name in names.items()})


def uid_of(user: int) -> int:
    """The uid that stands for a user of the trace; unknown users share one."""
    return _FIRST_UID + max(user, 0)


def _openings(project: int, fund: Fund, demand: CreditDemand, plan: ReplayPlan) -> Iterator[Open]:
    """The fund's allocations: the granted credit in equal parts over equal periods."""
    begin = demand.begin
    end = min(demand.end + 1 if plan.days is None else begin + plan.days * DAY, LAST_INSTANT)
    minutes = demand.seconds[fund] * plan.percent // 6_000
    for each in range(plan.periods):
        start, stop = (begin + (end - begin) * part // plan.periods for part in (each, each + 1))
        share = minutes * (each + 1) // plan.periods - minutes * each // plan.periods
        if start < stop:
            yield Open(
                project=project,
                resource=fund.resource,
                category="replay",
                start=Instant(start),
                end=Instant(stop),
                deposit=SuMinutes(min(share, AMOUNT_MAX)),
            )


def _ask(
    bank: Ledger, demand: CreditDemand, plan: ReplayPlan, requests: list[Request]
) -> list[Done]:
    """Raises FairbankError when any is refused."""
    return [
        _granted(outcome)
        for outcome in bank.apply(
            [SubmittedRequest(request, demand.begin, plan.actor) for request in requests]
        )
    ]


def _granted(outcome: Outcome) -> Done:
    if isinstance(outcome, Done):
        return outcome
    raise FairbankError(
        f"the replay could not be set up: {sentence(outcome)}", remedy=remedies(outcome)[0]
    )
