"""Set of rows that a batch of requests needs; the stores lock and load by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import assert_never

import msgspec

from fairbank.bank import requests as requests
from fairbank.bank.allocation import Allocation, AllocationEvent
from fairbank.bank.entry import REGISTRY, TERMS
from fairbank.bank.run import RESOLVED, RunRecord
from fairbank.cluster.job import Run
from fairbank.core.time import DAY, LAST_INSTANT

_WEEK = 7 * DAY


class AllocationFilter(msgspec.Struct, frozen=True):
    """Allocations valid at a time from `first` to `last`; only shared ones unless `own`."""

    first: int
    last: int
    own: bool

    def __or__(self, other: AllocationFilter) -> AllocationFilter:
        """Return a filter for both and the time between; both begin in one week."""
        return AllocationFilter(
            min(self.first, other.first), max(self.last, other.last), self.own or other.own
        )

    def has(self, allocation: Allocation) -> bool:
        terms = allocation.terms
        is_covered = terms.start <= self.last and self.first < terms.end
        return is_covered and (self.own or terms.shared)


ALL_OF_IT = AllocationFilter(0, LAST_INSTANT, own=True)

Filters = dict[tuple[int, str, int], AllocationFilter]
"""Filters by project, resource, and the week in which they begin. A report that is a year late
should not lock all allocations of that year.
"""


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
    allocation_filters: Filters = msgspec.field(default_factory=dict)
    """Filters for allocations, by project and resource."""
    without_hold: Filters = msgspec.field(default_factory=dict)
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
    subjects: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Terms, caps and roles, as `bank.entry.subject_of` names them: all entries about them."""
    owners: dict[tuple[int, str], set[int]] = msgspec.field(default_factory=dict)
    """Users whose sums are needed in all loaded allocations of a project and resource."""
    caps: set[tuple[int, int]] = msgspec.field(default_factory=set)
    """Sums and caps as (allocation, user)."""
    projects: set[int] = msgspec.field(default_factory=set)
    """Ids of projects."""
    credited: set[int] = msgspec.field(default_factory=set)
    """Allocations that get credit, whose projects are needed."""
    creating: list[requests.CreateProject | requests.AmendProject] = msgspec.field(
        default_factory=list
    )
    """Names to be given, with the projects that have one of them already."""
    closing: set[int] = msgspec.field(default_factory=set)
    """Projects to be removed: with all allocations, open runs and child projects."""
    renaming: set[int] = msgspec.field(default_factory=set)
    """Projects of which a rule needs to know whether they were ever used."""
    relabelling: set[int] = msgspec.field(default_factory=set)
    """Allocations of which a rule needs to know what moved credit in them."""
    with_parents: bool = False
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

    def add_filter(
        self, project: int, resource: str, wanted: AllocationFilter, *, without_hold: bool = False
    ) -> None:
        """Add a filter for the allocations of a project and resource.

        Args:
            project: id of the project.
            wanted: times and kind of the allocations; merged with a filter of the same week.
            without_hold: load them only if a run that ends has no row.
        """
        filters = self.without_hold if without_hold else self.allocation_filters
        key = project, resource, wanted.first // _WEEK
        known = filters.get(key)
        if known != wanted:  # most jobs of a batch begin in the same second
            filters[key] = wanted if known is None else known | wanted

    def filters(self, known: Set[Run]) -> Iterator[tuple[int, str, AllocationFilter]]:
        """Yield project, resource and filter of the allocations that are needed.

        Args:
            known: runs that have a row. If all `ending` runs do, `without_hold` is not needed.
        """
        every = (self.allocation_filters, self.without_hold)
        for filters in every[:1] if self.ending <= known else every:
            for (project, resource, _), reach in filters.items():
                yield project, resource, reach


def entries_of_runs(locks: LockSet, runs: Iterable[RunRecord]) -> set[int]:
    """Return the ids of entries that answer repeated reports, and of those to be undone.

    Most batches only start and end runs, and need none.
    """
    numbers = {
        record.set_by
        for record in runs
        if record.state in RESOLVED or record.reported.run in locks.changing
    }
    if locks.starting:
        numbers.update(record.id for record in runs if record.reported.run in locks.starting)
    return numbers | locks.undone


def lock_set_of(
    batch: Sequence[requests.SubmittedRequest], *, registry: bool = False, dry_run: bool = False
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
        if isinstance(request, requests.RunRequest):
            draw = _add_run(locks, request)
            if draw is not None:
                draws[draw] = None
        else:
            _add_rows(locks, request)
    for without_hold, chain, resource, owner, start in draws:
        for place, project in enumerate(chain):
            # The project's own allocations, and shared ones of its parents.
            own = AllocationFilter(start, start, own=place == 0)
            locks.add_filter(project, resource, own, without_hold=without_hold)
            locks.owners.setdefault((project, resource), set()).add(owner)
    return locks


_Draw = tuple[bool, tuple[int, ...], str, int, int]
"""Allocations that a run may draw on: whether only if its hold never arrived, its project chain,
resource, owner and start. Most requests have none.
"""


def _add_run(locks: LockSet, request: requests.ReportRequest) -> _Draw | None:
    """Add the run of a request, and return the allocations that it may draw on."""
    run, start = request.reported.run, request.reported.start
    locks.runs.add(run)
    if isinstance(request, requests.Hold):  # first: most requests are holds and charges
        locks.starting.add(run)
        if not request.chain:
            locks.registry = True
        return False, request.chain, request.resource, request.owner, start
    if request.account is not None:
        locks.registry = True  # it keeps refusals of jobs whose account no project has
    if isinstance(request, requests.Adjust):
        locks.changing.add(run)
    elif not isinstance(request, requests.Unpriced) and request.resource is not None:
        locks.ending.add(run)
        return True, request.chain, request.resource, request.owner, start
    return None


def _add_rows(locks: LockSet, request: requests.OtherRequest) -> None:
    """Add the rows of a request that is no report."""
    match request:
        case requests.Lapse() | requests.Refund():
            locks.runs.add(request.run)
        case requests.Deposit():
            locks.allocations.add(request.allocation)
            locks.credited.add(request.allocation)
        case requests.Withdraw() | requests.Expire():
            locks.allocations.add(request.allocation)
        case requests.Transfer():
            locks.allocations |= {request.source, request.target}
            locks.credited.add(request.target)
        case requests.Open(terms=terms):
            locks.projects.add(terms.project)
            locks.registry = True  # so that the project is not removed meanwhile
            locks.add_filter(terms.project, terms.resource, ALL_OF_IT)
            locks.opens += 1
        case requests.Amend():
            locks.allocations.add(request.allocation)
            locks.add_filter(request.project, request.resource, ALL_OF_IT)
            if request.new_resource is not None:
                locks.add_filter(request.project, request.new_resource, ALL_OF_IT)
            removes = request.event is AllocationEvent.REMOVE
            if request.new_resource is not None or request.category is not None or removes:
                locks.relabelling.add(request.allocation)
            reopens = request.event is AllocationEvent.REOPEN
            if request.end is not None or request.credit_limit is not None or reopens:
                locks.projects.add(request.project)  # a removed project gets no time or credit
        case requests.SetCap():
            locks.allocations.add(request.allocation)
            _add_user(locks, request.allocation, request.uid, request.project, request.by)
        case requests.Undo():
            _add_undo(locks, request)
        case _:
            _add_registry_rows(locks, request)


def _add_registry_rows(
    locks: LockSet,
    request: requests.CreateProject
    | requests.AmendProject
    | requests.RemoveProject
    | requests.SetMember
    | requests.IssueToken
    | requests.RevokeToken
    | requests.AuditNote,
) -> None:
    """Add the rows of a request whose entry belongs to no allocation."""
    locks.registry = True
    match request:
        case requests.CreateProject():
            locks.creating.append(request)
            locks.creates += 1
            if request.parent is not None:
                locks.projects.add(request.parent)
        case requests.AmendProject():
            locks.creating.append(request)
            locks.projects |= {request.project, request.parent or request.project}
            # To check that no parent is removed, and that the parents form no cycle.
            locks.with_parents |= bool(request.parent) or request.restore
            if request.gid is not None or request.account is not None:
                locks.renaming.add(request.project)
        case requests.RemoveProject():
            locks.projects.add(request.project)
            locks.closing.add(request.project)
        case requests.SetMember():
            locks.projects.add(request.project)
            _add_roles(locks, request.project, request.uid, request.by)
        case requests.IssueToken():
            locks.digests.add(request.grant.digest)
            locks.issues += 1
        case requests.RevokeToken():
            locks.tokens.add(request.token)
        case requests.AuditNote():
            pass
        case _:
            assert_never(request)


def _add_undo(locks: LockSet, request: requests.Undo) -> None:
    """Add the entry, the entry that has undone it, and what its reverse needs.

    The reverse of terms, a cap or a role needs all earlier entries about the same.
    """
    locks.undone.add(request.entry)
    locks.allocations.update(number for number in (request.allocation, request.other) if number)
    if request.run is None and request.allocation != REGISTRY:
        locks.credited.add(request.allocation)  # its reverse may deposit credit
    if request.run is not None:
        locks.runs.add(request.run)
    if request.allocation == REGISTRY:
        locks.registry = True
        locks.projects.update(() if request.project is None else (request.project,))
    if request.uid is not None:
        locks.subjects.add((request.allocation, request.uid))
        _add_user(locks, request.allocation, request.uid, request.project, request.by)
    elif request.project is not None and request.resource is not None:
        locks.subjects.add((request.allocation, TERMS))
        locks.relabelling.add(request.allocation)
        locks.projects.add(request.project)
        locks.add_filter(request.project, request.resource, ALL_OF_IT)


def _add_user(
    locks: LockSet, allocation: int, uid: int, project: int | None, by: int | None
) -> None:
    if allocation != REGISTRY:
        locks.caps.add((allocation, uid))
    if project is not None:
        _add_roles(locks, project, uid, by)
    if by is not None:
        locks.registry = True  # so that no role changes meanwhile


def _add_roles(locks: LockSet, project: int, *uids: int | None) -> None:
    locks.members.update((project, uid) for uid in uids if uid is not None)
