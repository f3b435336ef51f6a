"""Set of rows that a batch of requests needs; the stores lock and load by it."""

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
    """Rows that the store must lock and load for a batch.

    Every locked row makes other batches wait, so of a project and resource only the allocations are
    locked that a run could draw on. Runs of projects with credit of their own do not wait for each
    other because of a parent's unshared allocations, nor because of those of another year. The end
    of a run needs the allocation with its hold, and others only if it has no hold. Terms that
    another server changes while this batch waits are seen on the locked rows; an allocation that
    becomes usable meanwhile counts from the next batch on.
    """

    allocations: set[int] = msgspec.field(default_factory=set)
    """Ids of allocations."""
    funds: Funds = msgspec.field(default_factory=dict)
    """Filters for allocations, by project and resource."""
    late: Funds = msgspec.field(default_factory=dict)
    """The same, but needed only if one of the `ending` runs has no row."""
    ending: set[Run] = msgspec.field(default_factory=set)
    """Runs that end; a part of `runs`."""
    runs: set[Run] = msgspec.field(default_factory=set)
    """Runs, with the allocations of their holds."""
    starting: set[Run] = msgspec.field(default_factory=set)
    """Runs that start; a part of `runs`."""
    changing: set[Run] = msgspec.field(default_factory=set)
    """Runs whose hold changes; a part of `runs`."""
    keys: set[tuple[int, str]] = msgspec.field(default_factory=set)
    """Actors and idempotency keys of entries."""
    undone: set[int] = msgspec.field(default_factory=set)
    """Entries to be undone, with those that have undone them."""
    reworded: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Terms, caps and roles, as `bank.entry.tells_of` names them: all entries about them."""
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    """Users whose sums are needed in all loaded allocations of a project and resource."""
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Sums and caps as (allocation, user)."""
    projects: set[int] = msgspec.field(default_factory=set)
    """Ids of projects."""
    enriched: set[int] = msgspec.field(default_factory=set)
    """Allocations that get credit, whose projects are needed."""
    creating: list[CreateProject | AmendProject] = msgspec.field(default_factory=list)
    """Names to be given, with the projects that have one of them already."""
    closing: set[int] = msgspec.field(default_factory=set)
    """Projects to be removed: with all allocations, open runs and child projects."""
    renaming: set[int] = msgspec.field(default_factory=set)
    """Projects of which a rule needs to know whether they were ever used."""
    lines: bool = False
    """True adds all parents of the loaded projects."""
    members: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Members, by project and user."""
    tokens: set[int] = msgspec.field(default_factory=set)
    """Ids of tokens."""
    digests: set[bytes] = msgspec.field(default_factory=set)
    """Digests of tokens."""
    entries: int = 0
    """Maximum number of new entries."""
    opens: int = 0
    """Maximum number of new allocations."""
    creates: int = 0
    """Maximum number of new projects."""
    issues: int = 0
    """Maximum number of new tokens."""
    registry: bool = False
    """True adds the head of the registry."""
    dry_run: bool = False
    """Dry run: ids are only read, not taken."""

    def filters(self, known: Set[Run]) -> Iterator[tuple[int, str, AllocationFilter]]:
        """Yield project, resource and filter of the allocations that are needed.

        Args:
            known: runs that have a row. If all `ending` runs have one, `late` is not needed.
        """
        for funds in (self.funds,) if self.ending <= known else (self.funds, self.late):
            for (project, resource, _), reach in funds.items():
                yield project, resource, reach


def entries_of_runs(locks: LockSet, runs: Iterable[RunRecord]) -> set[int]:
    """Return the ids of entries that answer repeated reports, and of those to be undone.

    Most batches only start and end runs, and need none.
    """
    told = {each.set_by for each in runs if each.state in RESOLVED or each.run in locks.changing}
    if locks.starting:
        told.update(each.id for each in runs if each.run in locks.starting)
    return told | locks.undone


def lock_set_of(
    batch: Sequence[SubmittedRequest], *, registry: bool = False, dry_run: bool = False
) -> LockSet:
    """Return the rows that the requests of a batch need together.

    Args:
        batch: requests of the batch.
        registry: a first attempt showed that the head of the registry is needed.
        dry_run: nothing will be written.
    """
    locks = LockSet(registry=registry, dry_run=dry_run)
    # A dictionary keeps the order. Most runs of a batch are starts of one user within a second, and
    # these have the same draw.
    draws: dict[_Draw, None] = {}
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
"""Allocations that a run may draw on: whether only if its hold never arrived, its project chain,
resource, owner and start. Most requests have none.
"""


def _drawn_on(locks: LockSet, draw: _Draw) -> None:
    """Add the allocations that a run may draw on: the project's own, and shared ones of its
    parents.
    """
    late, chain, resource, owner, start = draw
    for place, project in enumerate(chain):
        want(
            locks.late if late else locks.funds,
            project,
            resource,
            AllocationFilter(start, start, own=place == 0),
        )
        locks.owners.setdefault((project, resource), set()).add(owner)


# --- rows of each request ---


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
    """Add the registry, which keeps refusals of jobs whose account no project has."""
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
    """Add the entry, the entry that has undone it, and what its reverse needs.

    The reverse of terms, a cap or a role needs all earlier entries about the same.
    """
    locks.undone.add(request.entry)
    locks.allocations.update(each for each in (request.book, request.other) if each)
    if request.run is None and request.book != REGISTRY:
        locks.enriched.add(request.book)  # its reverse may deposit credit
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
    locks.registry = True  # so that the project is not removed meanwhile
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
        locks.projects.add(request.project)  # a removed project gets no time or credit


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
        locks.registry = True  # so that no role changes meanwhile


def _create_project(locks: LockSet, request: CreateProject) -> None:
    locks.creating.append(request)
    locks.creates += 1
    locks.registry = True
    if request.parent is not None:
        locks.projects.add(request.parent)


def _amend_project(locks: LockSet, request: AmendProject) -> None:
    locks.creating.append(request)
    locks.projects |= {request.project, request.parent or request.project}
    # To check that no parent is removed, and that the parents form no cycle.
    locks.lines = locks.lines or bool(request.parent) or request.restore
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
