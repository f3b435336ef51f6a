"""The bank as Slurm's commands ask it: over REST, page after page, as values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fairbank.cluster.job import Run
from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.core.time import iso, parse_instant
from fairbank.rest.client import Client
from fairbank.slurm.compare.bank_records import (
    BankRun,
    BookedAllocation,
    BookedCluster,
    BookedProject,
    booked_allocation,
    booked_cluster,
    booked_project,
    booked_run,
)

PAGE, BATCH = 1_000, 500
"""Rows that are asked for at once, and reports that are sent at once."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much is done, and of how much."""


def silent(what: str, done: int, of: int) -> None:
    """For those who want no progress told."""


class ReportObjection(NamedTuple):
    """What the bank says against a report: `reason` where it is a refusal, `field` where it is about one that was sent."""

    detail: str
    remedy: str | None = None
    reason: str | None = None
    field: str | None = None

    def __str__(self) -> str:
        return f"{self.detail}{f' (try: {self.remedy})' if self.remedy else ''}"


class StoredRefusal(NamedTuple):
    """The last refusal that the bank keeps of a run, and when it said so."""

    at: int
    against: ReportObjection


class BankClient:
    """One bank. Raises what the client raises."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def demand_sight(self) -> None:
        """Raises Forbidden for those from whom the bank keeps other people's runs: to them, everything would seem to be missing."""
        me = self._client.get("/whoami")["data"]
        if not (me["superuser"] or me["admin"]):
            remedy = "ask as a superuser of the bank, over its socket or with a token of theirs"
            raise Forbidden(
                "you do not see everybody's runs and projects", field="server", remedy=remedy
            )

    def cluster(self, name: str | None) -> BookedCluster:
        """The prices of a cluster; None: of the only one. Raises NotFound, with those there are."""
        rows = self._client.get("/cluster")["data"]
        for row in rows:
            if row["name"] == name or (name is None and len(rows) == 1):
                return booked_cluster(row)
        there = ", ".join(row["name"] for row in rows) or "none"
        if name is None:
            raise NotFound(
                "the bank has not just one cluster",
                field="cluster",
                remedy=f"name one; the bank's settings know: {there}",
            )
        remedy = f"the bank's settings know: {there}; fairbank slurm import --dry-run prints the lines for {name}"
        raise NotFound(f"the bank has no cluster {name!r}", field="cluster", remedy=remedy)

    def runs(self, cluster: str, since: int, until: int) -> Iterator[BankRun]:
        """The runs that started in this period, and those that are still held, whenever they started; some of them twice."""
        period = {"since": iso(since), "until": iso(until)}
        for which in (period, {"state": "held"}):
            yield from map(
                booked_run, self._rows("/job", {"cluster": cluster, "order": "oldest", **which})
            )

    def refused(self, cluster: str, since: int) -> dict[tuple[int, int], StoredRefusal]:
        """When a report of a run was refused for the last time, and why, by job id and submission."""
        found: dict[tuple[int, int], StoredRefusal] = {}
        for row in self._rows(
            "/failure", {"cluster": cluster, "order": "oldest", "since": iso(since)}
        ):
            if row["run"]:
                run = Run.parse(row["run"])
                against = ReportObjection(
                    row["detail"], next(iter(row["remedies"]), None), row["reason"]
                )
                found[run.job_id, run.submitted] = StoredRefusal(parse_instant(row["at"]), against)
        return found

    def projects_alone(self) -> list[BookedProject]:
        """All projects without their members, which takes a request for each thousand and not for each."""
        return [booked_project(row, ()) for row in self._rows("/project")]

    def projects(
        self, progress: Progress = silent, *, removed: bool = False
    ) -> list[BookedProject]:
        """All projects with their members; with `removed` those as well that were removed, which have none any more."""
        rows = list(self._rows("/project", {"removed": "any"} if removed else None))
        found = []
        for done, row in enumerate(rows, 1):
            members = () if row.get("removed") else list(self._rows(f"/project/{row['id']}/member"))
            found.append(booked_project(row, members))
            progress("projects", done, len(rows))
        return found

    def allocations(self) -> list[BookedAllocation]:
        return list(map(booked_allocation, self._rows("/alloc")))

    def post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Carry it out; the answer's object."""
        found: dict[str, Any] = self._client.post(path, dict(body), key)["data"]
        return found

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        self._client.put(path, dict(body))

    def report(
        self, reports: Sequence[Mapping[str, Any]], progress: Progress = silent
    ) -> list[ReportObjection | None]:
        """Tell the bank of runs. For each, in order, None when it is in the books now, else what the bank said against it."""
        said: list[ReportObjection | None] = []
        for first in range(0, len(reports), BATCH):
            answers = self._client.post(
                "/job/bulk", {"reports": list(reports[first : first + BATCH])}
            )["data"]
            said += [None if each["status"] in (200, 201) else _against(each) for each in answers]
            progress("post", len(said), len(reports))
        return said

    def _rows(
        self, path: str, query: Mapping[str, object] | None = None
    ) -> Iterator[dict[str, Any]]:
        after: object = None
        while True:
            answer = self._client.get(path, {**(query or {}), "limit": PAGE, "after": after})
            if not isinstance(answer.get("data"), list):
                raise InvalidInput(
                    f"the bank's {path} is no list",
                    field="server",
                    remedy="is it a bank, and as new as this command?",
                )
            yield from answer["data"]
            after = answer.get("next")
            if not after:
                return


def _against(answer: Mapping[str, Any]) -> ReportObjection:
    reason = (answer.get("refusal") or {}).get("reason")
    return ReportObjection(
        str(answer.get("detail") or answer["status"]),
        answer.get("remedy"),
        reason,
        answer.get("field"),
    )
