"""The rows that a batch of requests needs, as a value that the stores load by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.allocation_filter import ALL_OF_IT, AllocationFilter, Funds, want
from fairbank.bank.entry import REGISTRY, TERMS
from fairbank.bank.requests import (
    Adjust,
    Amend,
    AmendProject,
    AuditNote,
    Charge,
    CreateProject,
    Deposit,
    Expire,
    Hold,
    IssueToken,
    Lapse,
    Open,
    Refund,
    Release,
    RemoveProject,
    RevokeToken,
    SetCap,
    SetMember,
    SubmittedRequest,
    Transfer,
    Undo,
    Unpriced,
    Withdraw,
)
from fairbank.bank.run import RESOLVED, RunRecord
from fairbank.cluster.job import Run


class LockSet(msgspec.Struct, kw_only=True):
    """What the store must load for a batch.

    What is loaded is locked, and whoever else needs it waits. So of a fund no more is wanted than a run could draw on: those who draw on
    allocations of their own do not wait for each other over what their parent does not share, nor over those of another year. A run that
    ends needs the allocation that carries its hold, and others only where it has none. Terms that another
    server changes while we wait are seen on what is locked; what they make eligible meanwhile counts from the next batch on, as if
    they had been changed after it.
    """

    allocations: set[int] = msgspec.field(default_factory=set)
    """Allocations by their numbers."""
    funds: Funds = msgspec.field(default_factory=dict)
    """Of which projects and resources, and what of them."""
    late: Funds = msgspec.field(default_factory=dict)
    """Likewise, but only if one of the runs that are `ending` is not in the books."""
    ending: set[Run] = msgspec.field(default_factory=set)
    """Runs that end; they are among the `runs`."""
    runs: set[Run] = msgspec.field(default_factory=set)
    """Runs, with the allocations that carry their holds."""
    starting: set[Run] = msgspec.field(default_factory=set)
    """Those of the `runs` that are said to start."""
    changing: set[Run] = msgspec.field(default_factory=set)
    """Those of the `runs` whose hold is to change."""
    keys: set[tuple[int, str]] = msgspec.field(default_factory=set)
    """Entries by the actor and key of their request."""
    undone: set[int] = msgspec.field(default_factory=set)
    """Entries that are to be taken back, with those that took them back before."""
    reworded: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Terms, caps and roles of which all that was ever said is wanted, as `bank.entry.tells_of` names them."""
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    """By project and resource, the users whose sums are wanted in whatever allocations of these they may draw on."""
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Sums and caps as (allocation, user)."""
    projects: set[int] = msgspec.field(default_factory=set)
    """Projects by their numbers."""
    enriched: set[int] = msgspec.field(default_factory=set)
    """Allocations that get credit: their projects are wanted."""
    creating: list[CreateProject | AmendProject] = msgspec.field(default_factory=list)
    """Names to be given: the projects that these would collide with are wanted."""
    closing: set[int] = msgspec.field(default_factory=set)
    """Projects that are to be removed: all their allocations are wanted, their open runs, and the projects under them."""
    renaming: set[int] = msgspec.field(default_factory=set)
    """Projects of which it is asked whether they were ever used."""
    lines: bool = False
    """Whether of all projects loaded those above them are wanted too."""
    members: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Roles by project and user."""
    tokens: set[int] = msgspec.field(default_factory=set)
    """Tokens by their numbers."""
    digests: set[bytes] = msgspec.field(default_factory=set)
    """Tokens by their digests."""
    entries: int = 0
    """How many fresh numbers are wanted for entries, at most."""
    opens: int = 0
    """And for allocations."""
    creates: int = 0
    """And for projects."""
    issues: int = 0
    """And for tokens."""
    registry: bool = False
    """Whether the head of the registry is wanted."""
    foretold: bool = False
    """Whether nothing will be written: then the numbers that would be drawn next will do."""

    def filters(self, known: Set[Run]) -> Iterator[tuple[int, str, AllocationFilter]]:
        """Project, resource, and what is wanted of their allocations, where of the `ending` runs these are in the books."""
        for funds in (self.funds,) if self.ending <= known else (self.funds, self.late):
            for (project, resource, _), reach in funds.items():
                yield project, resource, reach


def entries_of_runs(locks: LockSet, runs: Iterable[RunRecord]) -> set[int]:
    """The entries that a report made before would be answered with, none where every run just starts or ends; and those to be undone."""
    told = {each.set_by for each in runs if each.state in RESOLVED or each.run in locks.changing}
    if locks.starting:
        told.update(each.id for each in runs if each.run in locks.starting)
    return told | locks.undone


def lock_set_of(
    batch: Sequence[SubmittedRequest], *, registry: bool = False, foretold: bool = False
) -> LockSet:
    """The needs of all requests together; `registry` when a first try showed that the registry is wanted, `foretold` when nothing will be
    written."""
    locks = LockSet(registry=registry, foretold=foretold)
    draws: dict[
        _Draw, None
    ] = {}  # in their order; of a user's runs that start in one second, in a batch the most by far, it is one
    for submitted in batch:
        request = submitted.request
        locks.entries += 2
        if request.key is not None:
            locks.keys.add((submitted.actor, request.key))
        draw = _OF[type(request)](locks, request)
        if draw is not None:
            draws[draw] = None
    for draw in draws:
        _drawn_on(locks, draw)
    return locks


_Draw = tuple[bool, tuple[int, ...], str, int, int]
"""What a run may draw on: whether it matters only if its hold never arrived, its line, resource, owner and start. Most requests have none."""


def _drawn_on(locks: LockSet, draw: _Draw) -> None:
    """What a run of this line could draw on: allocations of its own, and those that its parents share."""
    late, chain, resource, owner, start = draw
    for place, project in enumerate(chain):
        want(
            locks.late if late else locks.funds,
            project,
            resource,
            AllocationFilter(start, start, own=place == 0),
        )
        locks.owners.setdefault((project, resource), set()).add(owner)


# --- what each request needs ---


def _hold(locks: LockSet, request: Hold) -> _Draw:
    locks.starting.add(request.run)
    locks.runs.add(request.run)
    if not request.chain:
        locks.registry = True
    return False, request.chain, request.resource, request.owner, request.start


def _resolution(locks: LockSet, request: Charge | Release) -> _Draw | None:
    locks.runs.add(request.run)
    _of_nobody(locks, request)
    if request.resource is None or request.owner is None or request.start is None:
        return None
    locks.ending.add(request.run)
    return True, request.chain, request.resource, request.owner, request.start


def _adjust(locks: LockSet, request: Adjust) -> None:
    locks.changing.add(request.run)
    locks.runs.add(request.run)
    _of_nobody(locks, request)


def _unpriced(locks: LockSet, request: Unpriced) -> None:
    locks.runs.add(request.run)
    _of_nobody(locks, request)


def _of_nobody(locks: LockSet, request: Adjust | Charge | Release | Unpriced) -> None:
    """What is refused because no project has the account is kept in the registry."""
    if request.account is not None:
        locks.registry = True


def _run_alone(locks: LockSet, request: Lapse | Refund) -> None:
    locks.runs.add(request.run)


def _deposit(locks: LockSet, request: Deposit) -> None:
    locks.allocations.add(request.allocation)
    locks.enriched.add(request.allocation)


def _withdraw(locks: LockSet, request: Withdraw) -> None:
    locks.allocations.add(request.allocation)


def _transfer(locks: LockSet, request: Transfer) -> None:
    locks.allocations |= {request.source, request.target}
    locks.enriched.add(request.target)


def _undo(locks: LockSet, request: Undo) -> None:
    """The entry with what undid it before; then what its reverse needs, and where that only says something, all that was said of it."""
    locks.undone.add(request.entry)
    locks.allocations.update(each for each in (request.book, request.other) if each)
    if request.run is None and request.book != REGISTRY:
        locks.enriched.add(request.book)  # its reverse may be credit
    if request.run is not None:
        locks.runs.add(request.run)
    if request.book == REGISTRY:
        locks.registry = True
        locks.projects.update(() if request.project is None else (request.project,))
    if request.uid is not None:
        locks.reworded.add((request.book, request.uid))
        _of_user(locks, request.book, request.uid, request.project, request.by)
    elif request.project is not None and request.resource is not None:
        locks.reworded.add((request.book, TERMS))
        locks.projects.add(request.project)
        want(locks.funds, request.project, request.resource, ALL_OF_IT)


def _open(locks: LockSet, request: Open) -> None:
    locks.projects.add(request.project)
    locks.registry = True  # no project is removed while it gets an allocation
    want(locks.funds, request.project, request.resource, ALL_OF_IT)
    locks.opens += 1


def _amend(locks: LockSet, request: Amend) -> None:
    locks.allocations.add(request.allocation)
    want(locks.funds, request.project, request.resource, ALL_OF_IT)
    if (
        request.end is not None
        or request.credit_limit is not None
        or request.event is AllocationEvent.REOPEN
    ):
        locks.projects.add(request.project)  # one that was removed gets no more time, nor credit


def _expire(locks: LockSet, request: Expire) -> None:
    locks.allocations.add(request.allocation)


def _set_cap(locks: LockSet, request: SetCap) -> None:
    locks.allocations.add(request.allocation)
    _of_user(locks, request.allocation, request.uid, request.project, request.by)


def _of_user(locks: LockSet, book: int, uid: int, project: int | None, by: int | None) -> None:
    if book != REGISTRY:
        locks.caps.add((book, uid))
    if project is not None:
        _roles(locks, project, uid, by)
    if by is not None:
        locks.registry = True  # nobody's role changes while it is looked at


def _create_project(locks: LockSet, request: CreateProject) -> None:
    locks.creating.append(request)
    locks.creates += 1
    locks.registry = True
    if request.parent is not None:
        locks.projects.add(request.parent)


def _amend_project(locks: LockSet, request: AmendProject) -> None:
    locks.creating.append(request)
    locks.projects |= {request.project, request.parent or request.project}
    locks.lines = (
        locks.lines or bool(request.parent) or request.restore
    )  # nothing comes back under what was removed
    if request.gid is not None or request.account is not None:
        locks.renaming.add(request.project)
    locks.registry = True


def _remove_project(locks: LockSet, request: RemoveProject) -> None:
    locks.projects.add(request.project)
    locks.closing.add(request.project)
    locks.registry = True


def _set_member(locks: LockSet, request: SetMember) -> None:
    locks.projects.add(request.project)
    _roles(locks, request.project, request.uid, request.by)
    locks.registry = True


def _roles(locks: LockSet, project: int, *uids: int | None) -> None:
    locks.members.update((project, uid) for uid in uids if uid is not None)


def _issue(locks: LockSet, request: IssueToken) -> None:
    locks.digests.add(request.digest)
    locks.issues += 1
    locks.registry = True


def _revoke(locks: LockSet, request: RevokeToken) -> None:
    locks.tokens.add(request.token)
    locks.registry = True


def _note(locks: LockSet, request: AuditNote) -> None:
    locks.registry = True


_OF: Mapping[type, Callable[[LockSet, Any], _Draw | None]] = {
    Hold: _hold,
    Charge: _resolution,
    Release: _resolution,
    Adjust: _adjust,
    Lapse: _run_alone,
    Refund: _run_alone,
    Unpriced: _unpriced,
    Deposit: _deposit,
    Withdraw: _withdraw,
    Transfer: _transfer,
    Undo: _undo,
    Open: _open,
    Amend: _amend,
    Expire: _expire,
    SetCap: _set_cap,
    CreateProject: _create_project,
    AmendProject: _amend_project,
    RemoveProject: _remove_project,
    SetMember: _set_member,
    IssueToken: _issue,
    RevokeToken: _revoke,
    AuditNote: _note,
}
