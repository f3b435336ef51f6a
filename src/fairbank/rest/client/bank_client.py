"""Client of the bank that returns typed records, page by page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, ValidationError, convert, structs

from fairbank.bank.allocation import Allocation
from fairbank.bank.project import Project
from fairbank.bank.records import BankCluster, BankProject, BankRun
from fairbank.cluster.job import Run
from fairbank.cluster.partition import cluster_names, only_cluster
from fairbank.cluster.run_report import RunReport, encode_report
from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.core.progress import StageProgress, no_progress
from fairbank.core.time import iso, parse_instant
from fairbank.rest.client import Client
from fairbank.rest.client.bulk_reports import post_reports
from fairbank.rest.schemas.alloc import (
    AllocationRow,
    MemberRow,
    ProjectRow,
    allocation_record,
    project_record,
)
from fairbank.rest.schemas.answers import ReportAnswer
from fairbank.rest.schemas.job import FailureRow, JobRow, run_record
from fairbank.rest.schemas.server import ClusterRow, cluster_record

Schema = TypeVar("Schema")

PAGE, BATCH = 1_000, 500
"""Rows in a page, and reports in a request."""


class ReportRefusal(NamedTuple):
    """Refusal of a report by the bank; `reason` of a rule, or `field` for one wrong field."""

    detail: str
    remedy: str | None = None
    reason: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return f"{self.detail}{f' (try: {self.remedy})' if self.remedy else ''}"


class ReportAmounts(Struct, frozen=True):
    """Amounts that the bank posted for reports, in SU-minutes.

    What exceeds the credit of the allocation is written off, not charged.
    """

    charged: int = 0
    written_off: int = 0
    released: int = 0

    @classmethod
    def total(cls, parts: Iterable[ReportAmounts]) -> ReportAmounts:
        """Return the sums of all parts."""
        amounts = [structs.astuple(part) for part in parts]
        return cls(*map(sum, zip(*amounts, strict=True)))


class StoredRefusal(NamedTuple):
    """Last refusal of a run that the bank stores, and its time."""

    at: int
    refusal: ReportRefusal


class BankClient:
    """Requests to one bank. Raises what the client raises."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def require_full_view(self) -> None:
        """Raise Forbidden for users who may not see all runs: others would seem to be missing."""
        me = self._client.get("/whoami")["data"]
        if not (me["superuser"] or me["admin"]):
            remedy = "ask as a superuser of the bank, over its socket or with a token of theirs"
            raise Forbidden(
                "you do not see everybody's runs and projects",
                field="server" if self._client.acting_as is None else "--as",
                remedy=remedy,
            )

    def cluster(self, name: str | None) -> BankCluster:
        """Return a cluster with its prices; None: the only one. Raises NotFound, InvalidInput."""
        rows = {row["name"]: row for row in self._client.get("/cluster")["data"]}
        name = name or only_cluster(rows, field="--clusters")
        if name in rows:
            return parse_cluster(rows[name])
        remedy = (
            f"{cluster_names(rows)}; fairbank slurm import --dry-run prints the lines for {name}"
        )
        raise NotFound(f"the bank has no cluster {name!r}", field="cluster", remedy=remedy)

    def categories(self) -> frozenset[str]:
        """Return the categories of the bank's settings."""
        rows = [check_row(row, ClusterRow) for row in self._client.get("/cluster")["data"]]
        return frozenset(name for row in rows for name in row.categories)

    def runs(
        self, cluster: str | None, since: int, until: int, *, measured: bool = False
    ) -> Iterator[BankRun]:
        """Yield the runs that started in a period, and those still held. Some come twice.

        Args:
            cluster: name of the cluster; None for all.
            since: the start of the period, in seconds since 1970.
            until: its end, which is excluded.
            measured: yield measured use instead of jobs; `cluster` is the measured system.
        """
        period = {"since": iso(since), "until": iso(until)}
        of_kind = {"cluster": cluster, "order": "oldest", "measured": "true" if measured else None}
        for filters in (period, {"state": "held"}):
            yield from map(parse_run, self._rows("/job", {**of_kind, **filters}))

    def refusals(self, cluster: str, since: int) -> dict[tuple[int, int], StoredRefusal]:
        """Return the last refusal of each run since a time, by job id and submission."""
        refusals: dict[tuple[int, int], StoredRefusal] = {}
        filters = {"cluster": cluster, "order": "oldest", "since": iso(since)}
        for row in self._rows("/failure", filters):
            failure = check_row(row, FailureRow)
            if failure.run:
                run, at = Run.parse(failure.run), parse_instant(failure.at, field="at")
                remedy = next(iter(failure.remedies), None)
                refusal = ReportRefusal(failure.detail, remedy, failure.reason)
                refusals[run.job_id, run.submitted] = StoredRefusal(at, refusal)
        return refusals

    def projects_without_members(self) -> list[Project]:
        """Return all projects without their members, which takes one request per thousand."""
        return [project_record(check_row(row, ProjectRow)) for row in self._rows("/project")]

    def projects(
        self, progress: StageProgress = no_progress, *, removed: bool = False
    ) -> list[BankProject]:
        """Return all projects with their members.

        Args:
            progress: called for each project.
            removed: include removed projects, which have no members.
        """
        rows = list(self._rows("/project", {"removed": "any"} if removed else None))
        projects = []
        for done, row in enumerate(rows, 1):
            project = project_record(check_row(row, ProjectRow))
            none = frozenset[int]()
            members, by_group = (none, none) if project.removed else self._members(project.id)
            facts = structs.asdict(project)
            projects.append(BankProject(**facts, members=members, group_members=by_group))
            progress("projects", done, len(rows))
        return projects

    def allocations(self) -> list[Allocation]:
        """Return all allocations."""
        return [allocation_record(check_row(row, AllocationRow)) for row in self._rows("/alloc")]

    def post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Post a request and return the `data` of the answer.

        Args:
            key: idempotency key; None for a new one.
        """
        data: dict[str, Any] = self._client.post(path, dict(body), key)["data"]
        return data

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Put a request."""
        self._client.put(path, dict(body))

    def report(
        self, reports: Sequence[RunReport], progress: StageProgress = no_progress
    ) -> list[ReportAmounts | ReportRefusal]:
        """Report runs; return in their order what the bank posted, or its refusal."""
        results: list[ReportAmounts | ReportRefusal] = []
        for first in range(0, len(reports), BATCH):
            bodies = list(map(encode_report, reports[first : first + BATCH]))
            results += map(_result, post_reports(self._client, bodies, field="server"))
            progress("post", len(results), len(reports))
        return results

    def _members(self, project: int) -> tuple[frozenset[int], frozenset[int]]:
        """Return the members by rows of the bank, and those by the Unix group alone."""
        rows = [check_row(row, MemberRow) for row in self._rows(f"/project/{project}/member")]
        by_row = frozenset(row.uid for row in rows if row.via == "bank")
        return by_row, frozenset(row.uid for row in rows) - by_row

    def _rows(
        self, path: str, query: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        after: object = None
        while True:
            answer = self._client.get(path, {**(query or {}), "limit": PAGE, "after": after})
            if not isinstance(answer.get("data"), list):
                raise InvalidInput(
                    f"the bank's {path} is not a list",
                    field="server",
                    remedy="is it a bank, and as new as this command?",
                )
            yield from answer["data"]
            after = answer.get("next")
            if not after:
                return


def _result(answer: ReportAnswer) -> ReportAmounts | ReportRefusal:
    if (granted := answer.granted) is not None:
        return ReportAmounts(granted.charged or 0, granted.written_off or 0, granted.released or 0)
    reason = None if answer.refusal is None else answer.refusal.reason
    detail = answer.detail or str(answer.status)
    return ReportRefusal(detail, answer.remedy, reason, answer.field)


def parse_cluster(row: Mapping[str, Any]) -> BankCluster:
    """Parse a row of the list of clusters. Raises InvalidInput, naming the field."""
    cluster = check_row(row, ClusterRow)
    free_states = frozenset(cluster.free_states)
    return BankCluster(*structs.astuple(cluster_record(cluster)), free_states=free_states)


def parse_run(row: Mapping[str, Any]) -> BankRun:
    """Parse a row of the list of jobs. Raises InvalidInput, naming the field."""
    job = check_row(row, JobRow)
    return BankRun(*structs.astuple(run_record(job)), account=job.account)


def check_row(row: Mapping[str, Any], schema: type[Schema]) -> Schema:
    """Return a row of the bank's answer by its schema. Raises InvalidInput, naming the field."""
    try:
        return convert(row, schema)
    except ValidationError as error:
        raise InvalidInput(
            f"the bank's answer is not understood: {error}",
            field="server",
            remedy="is the bank as new as this command?",
        ) from error
