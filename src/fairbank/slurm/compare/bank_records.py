"""The bank's side of things, as its answers tell it: runs, projects, allocations, clusters with their prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from fairbank.bank.policy import Policy
from fairbank.bank.project import line_of
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_instant
from fairbank.core.tres import BillingRule

Row = Mapping[str, Any]

USUALLY_FREE: frozenset[str] = Policy().free_states
"""What costs nothing at a bank that does not say so, being older than this command."""


class BankRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run in the books, in SU-minutes. `charged` and `written_off` together are what it cost. `qos`, `tres` and `limit_seconds` are None
    where nobody told."""

    id: int
    job_id: int
    submitted: int
    restart: int
    allocation: int
    account: str
    owner: int = msgspec.field(name="owner_uid")
    partition: str
    state: str
    held: int
    charged: int
    refunded: int
    written_off: int
    start: int
    ended: int | None
    outcome: str | None
    elapsed: int | None
    qos: str | None = None
    tres: str | None = None
    limit_seconds: int | None = msgspec.field(name="time_limit", default=None)

    @property
    def open(self) -> bool:
        """Whether an end may still be entered."""
        return self.state in ("held", "lapsed")

    def run(self, cluster: str) -> Run:
        return Run(cluster, self.job_id, self.submitted, self.restart)


class BookedProject(msgspec.Struct, frozen=True, kw_only=True):
    """A project, with its members' uids and roles."""

    id: int
    group: str = msgspec.field(name="gname")
    gid: int
    account: str
    parent: int | None
    members: Mapping[int, str] = {}
    removed: bool = False


class BookedAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation with its sums, in SU-minutes; valid at t when start <= t < end."""

    id: int
    project: int
    resource: str
    start: int
    end: int
    state: str
    shared: bool
    deposited: int = 0
    charged: int = 0
    held: int
    available: int


Booked = TypeVar("Booked", BankRun, BookedProject, BookedAllocation)


def booked_run(row: Row) -> BankRun:
    """A row of the bank's list of jobs. This and its like raise InvalidInput, naming the field, for what is no such row."""
    return _booked(row, BankRun, "submitted", "start", "ended")


def booked_project(row: Row, members: Sequence[Row]) -> BookedProject:
    """A row of the list of projects, with those of its members."""
    return _booked(
        {**row, "members": {each["uid"]: each["role"] for each in members}}, BookedProject
    )


def booked_allocation(row: Row) -> BookedAllocation:
    """A row of the list of allocations."""
    return _booked(row, BookedAllocation, "start", "end")


def _booked(row: Row, kind: type[Booked], *times: str) -> Booked:
    """A row as a value of this kind: `times` become instants, the rest stays as it is."""
    moments = {
        name: parse_instant(row[name], field=name)
        for name in times
        if isinstance(row.get(name), str)
    }
    try:
        return msgspec.convert({**row, **moments}, kind)
    except msgspec.ValidationError as bad:
        raise InvalidInput(
            f"the bank's answer is not understood: {bad}",
            field="server",
            remedy="is the bank as new as this command?",
        ) from bad


class BookedCluster(Cluster, frozen=True):
    """A cluster as the bank prices it: runs that end in one of `free_states` cost nothing there."""

    free_states: frozenset[str] = USUALLY_FREE


def booked_cluster(row: Row) -> BookedCluster:
    """A cluster as the bank prices it."""
    partitions = {
        each["name"]: Partition(
            each["name"],
            each["resource"],
            None
            if each["weights"] is None
            else {name: Fraction(weight) for name, weight in each["weights"].items()},
            BillingRule(each["adding"]),
        )
        for each in row["partitions"]
    }
    factors = {name: Fraction(factor) for name, factor in row["qos_factors"].items()}
    return BookedCluster(
        row["name"], partitions, factors, frozenset(row.get("free_states", USUALLY_FREE))
    )


class BankFunds:
    """Who may draw on what: projects with the line of their parents, and the allocations of each by resource."""

    def __init__(
        self, projects: Sequence[BookedProject], allocations: Sequence[BookedAllocation] = ()
    ) -> None:
        parents = {each.id: each.parent for each in projects}
        self.lines = {each.id: line_of(each.id, parents) for each in projects}
        """Each project with the parents whose shared credit it may draw on, nearest first."""
        self.by_account = {each.account: each for each in projects}
        self.resources = sorted({each.resource for each in allocations})
        self._of: dict[tuple[int, str], list[BookedAllocation]] = defaultdict(list)
        for each in sorted(allocations, key=lambda one: one.start):
            self._of[each.project, each.resource].append(each)

    def own(self, project: int, resource: str) -> list[BookedAllocation]:
        """A project's own allocations of a resource, the earliest first."""
        return self._of.get((project, resource), [])

    def payers(self, project: int, resource: str, at: int) -> list[BookedAllocation]:
        """The allocations that may pay for a run of this project that starts at this instant, in the order in which they do."""
        return [
            each
            for lender in self.lines[project]
            for each in self.own(lender, resource)
            if each.start <= at < each.end and (each.shared or lender == project)
        ]
