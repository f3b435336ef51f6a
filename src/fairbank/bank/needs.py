"""Which rows a batch of wishes needs: computed before any of them is read, so that each is locked once and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from fairbank.bank.run import RunRecord, RunState
from fairbank.bank.wish import (
    Adjust,
    Amend,
    Asked,
    Charge,
    Deposit,
    Expire,
    Found,
    Hold,
    IssueToken,
    Lapse,
    Note,
    Open,
    Recharge,
    Refund,
    Release,
    RevokeToken,
    SetCap,
    SetMember,
    Transfer,
    Unpriced,
    Withdraw,
)
from fairbank.cluster.job import Run


class Needs(msgspec.Struct, kw_only=True):
    """What the store must load for a batch.

    `allocations` by number, `funds` by project and resource, `runs` with their allocations (those that are said to start
    are `starting`, those whose hold is to change `changing`), entries by the actor and key of a wish in `keys`,
    entries to be `undone` with those that undid them before (refunds among them are to be `recharged`),
    `caps` as (allocation, user), user sums for `owners` in whatever allocations they may draw on,
    `projects` and those that a `founding` would collide with, `members` by project and user, `tokens` by number and by their `digests`.
    `entries`, `opens`, `founds`, `issues` count the fresh numbers wanted at most.
    """

    allocations: set[int] = msgspec.field(default_factory=set)
    funds: set[tuple[int, str]] = msgspec.field(default_factory=set)
    runs: set[Run] = msgspec.field(default_factory=set)
    starting: set[Run] = msgspec.field(default_factory=set)
    changing: set[Run] = msgspec.field(default_factory=set)
    keys: set[tuple[int, str]] = msgspec.field(default_factory=set)
    undone: set[int] = msgspec.field(default_factory=set)
    recharged: set[int] = msgspec.field(default_factory=set)
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    projects: set[int] = msgspec.field(default_factory=set)
    founding: list[Found] = msgspec.field(default_factory=list)
    members: set[tuple[int, int]] = msgspec.field(default_factory=set)
    tokens: set[int] = msgspec.field(default_factory=set)
    digests: set[bytes] = msgspec.field(default_factory=set)
    entries: int = 0
    opens: int = 0
    founds: int = 0
    issues: int = 0
    office: bool = False


def needs_of(batch: Sequence[Asked], *, office: bool = False) -> Needs:
    """The needs of all wishes together; `office` when a first try showed that the office's book is wanted."""
    needs = Needs(office=office)
    for asked in batch:
        wish = asked.wish
        needs.entries += 2
        if wish.key is not None:
            needs.keys.add((asked.actor, wish.key))
        if isinstance(wish, Deposit | Withdraw | Transfer | Recharge | Amend | SetCap) and wish.undoes is not None:
            needs.undone.add(wish.undoes)
        match wish:
            case Hold():
                needs.starting.add(wish.run)
                _fund(needs, wish.run, wish.line, wish.resource, wish.owner)
            case Charge() | Release():
                _fund(needs, wish.run, wish.line, wish.resource, wish.owner)
            case Adjust():
                needs.changing.add(wish.run)
                needs.runs.add(wish.run)
            case Lapse() | Refund() | Unpriced():
                needs.runs.add(wish.run)
            case Recharge():
                needs.runs.add(wish.run)
                needs.recharged.add(wish.undoes)
            case Deposit() | Withdraw() | Expire():
                needs.allocations.add(wish.allocation)
            case Amend():
                needs.allocations.add(wish.allocation)
                needs.funds.add((wish.project, wish.resource))
            case SetCap():
                needs.allocations.add(wish.allocation)
                needs.caps.add((wish.allocation, wish.uid))
                if wish.project is not None:
                    needs.members |= {(wish.project, uid) for uid in (wish.uid, wish.by) if uid is not None}
            case Transfer():
                needs.allocations |= {wish.source, wish.target}
            case Open():
                needs.projects.add(wish.project)
                needs.funds.add((wish.project, wish.resource))
                needs.opens += 1
            case Found():
                needs.founding.append(wish)
                needs.founds += 1
                needs.office = True
                if wish.parent is not None:
                    needs.projects.add(wish.parent)
            case SetMember():
                needs.projects.add(wish.project)
                needs.members |= {(wish.project, uid) for uid in (wish.uid, wish.by) if uid is not None}
                needs.office = True
            case IssueToken():
                needs.digests.add(wish.digest)
                needs.issues += 1
                needs.office = True
            case RevokeToken():
                needs.tokens.add(wish.token)
                needs.office = True
            case Note():
                needs.office = True
    return needs


def told_by(needs: Needs, runs: Iterable[RunRecord]) -> set[int]:
    """The entries that a report made before would be answered with, none where every run just starts or ends; and those to be undone."""
    told = {each.set_by for each in runs if each.state in _RESOLVED or each.run in needs.changing}
    if needs.starting:
        told.update(each.id for each in runs if each.run in needs.starting)
    return told | needs.undone


_RESOLVED = (RunState.CHARGED, RunState.RELEASED)


def _fund(needs: Needs, run: Run, line: tuple[int, ...], resource: str | None, owner: int | None) -> None:
    needs.runs.add(run)
    if resource is None or owner is None:
        return
    for project in line:
        needs.funds.add((project, resource))
        needs.owners.setdefault((project, resource), set()).add(owner)
