"""Records of the bank as its REST answers have them: runs, projects, allocations, clusters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairbank.bank.project import project_chain
from fairbank.bank.refusals import Reason
from fairbank.cluster.job import Run
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.time import parse_instant

Row = Mapping[str, Any]

CONTRADICTS_HOLD = Reason.REPORT_MISMATCH.name
"""Reason of a stored refusal whose report is of another job than the hold."""


class BankRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Run of the ledger, in SU-minutes. It cost `charged` and `written_off` together.

    `qos`, `tres` and `limit_seconds` are None where no report had them.
    """

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
    qos: str | None
    tres: str | None
    limit_seconds: int | None = msgspec.field(name="time_limit")

    @property
    def is_open(self) -> bool:
        """True while an end may still be entered."""
        return self.state in ("held", "lapsed")

    def run(self, cluster: str) -> Run:
        """Return the identity of the run."""
        return Run(cluster, self.job_id, self.submitted, self.restart)


class BankProject(msgspec.Struct, frozen=True, kw_only=True):
    """Project, with the roles of its members by uid."""

    id: int
    group: str = msgspec.field(name="gname")
    gid: int
    account: str
    parent: int | None
    members: Mapping[int, str] = {}
    removed: bool


class BankAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """Allocation with its sums, in SU-minutes; valid at t when start <= t < end."""

    id: int
    project: int
    resource: str
    start: int
    end: int
    state: str
    shared: bool
    partition: str | None = None
    reservation: str | None = None
    deposited: int
    charged: int
    held: int
    available: int


Record = TypeVar("Record")


def parse_run(row: Row) -> BankRun:
    """Parse a row of the bank's list of jobs. Raises InvalidInput, as all of these."""
    return parse_record(row, BankRun, "submitted", "start", "ended")


def parse_project(row: Row, members: Sequence[Row]) -> BankProject:
    """Parse a row of the list of projects, with the rows of its members."""
    return parse_record(
        {**row, "members": {member["uid"]: member["role"] for member in members}}, BankProject
    )


def parse_allocation(row: Row) -> BankAllocation:
    """Parse a row of the list of allocations."""
    return parse_record(row, BankAllocation, "start", "end")


def parse_record(row: Row, kind: type[Record], *times: str) -> Record:
    """Convert a row, after its columns `times` from text to instants.

    Raises InvalidInput, naming the field.
    """
    instants = {
        name: parse_instant(row[name], field=name)
        for name in times
        if isinstance(row.get(name), str)
    }
    try:
        return msgspec.convert({**row, **instants}, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"the bank's answer is not understood: {error}",
            field="server",
            remedy="is the bank as new as this command?",
        ) from error


class BankCluster(Cluster, frozen=True, kw_only=True):
    """Cluster as the bank prices it. Runs that end in one of `free_states` cost nothing."""

    free_states: frozenset[str]


class BankFunds:
    """Projects with their chains of parents, and the allocations of each by resource."""

    def __init__(
        self, projects: Sequence[BankProject], allocations: Sequence[BankAllocation] = ()
    ) -> None:
        parents = {record.id: record.parent for record in projects}
        self.chains = {record.id: project_chain(record.id, parents) for record in projects}
        """Each project with the parents whose shared credit it may use, nearest first."""
        self.by_account = {record.account: record for record in projects}
        self.resources = sorted({record.resource for record in allocations})
        self._of: dict[tuple[int, str], list[BankAllocation]] = defaultdict(list)
        for record in sorted(allocations, key=lambda allocation: allocation.start):
            self._of[record.project, record.resource].append(record)

    def own(self, project: int, resource: str) -> list[BankAllocation]:
        """Return a project's own allocations of a resource, the earliest first."""
        return self._of.get((project, resource), [])

    def payers(self, project: int, resource: str, at: int) -> list[BankAllocation]:
        """Return the allocations that may pay for a run, in the order in which they do.

        Args:
            project: of the run.
            resource: that the run is billed on.
            at: start of the run.
        """
        return [
            allocation
            for lender in self.chains[project]
            for allocation in self.own(lender, resource)
            if allocation.start <= at < allocation.end and (allocation.shared or lender == project)
        ]
