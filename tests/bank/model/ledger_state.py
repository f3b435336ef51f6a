"""State of the model: granted requests in plain dictionaries."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from fairbank.cluster.job import Run


class LedgerState:
    """Granted requests, and all submitted ones. Requests are numbered from 0 in their order.

    Every figure is added up again from all granted requests.
    """

    def __init__(self, *, enforce: bool, write_off: bool, late: bool) -> None:
        self.enforce, self.write_off, self.late = enforce, write_off, late
        self.projects: dict[int, dict[str, Any]] = {}
        self.members: dict[tuple[int, int], str] = {}
        self.tokens: dict[int, dict[str, Any]] = {}
        self.allocations: dict[int, dict[str, Any]] = {}
        self.credit: list[tuple[int, int]] = []
        self.runs: dict[Run, dict[str, Any]] = {}
        self.caps: dict[tuple[int, int], int | None] = {}
        self.answers: dict[tuple[int, str], tuple[w.SubmittedRequest, str, int]] = {}
        self.submitted: list[w.SubmittedRequest] = []
        self.reversals: dict[int, Any] = {}
        """Request that undoes each entry, by the number of the entry."""
        self.changes: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        """History of terms, caps and roles. `undoable` has the entries that may be undone."""
        self.expiry_entries: set[int] = set()
        """Entries that only record the end of a period."""
        self.undone: dict[int, int] = {}
        """Undone entries, each with the entry that undid it."""
        self.against: int | None = None
        """Entry because of which the last undo was refused."""
        self.same_as: int | None = None

    def deposited(self, where: int) -> int:
        return sum(amount for number, amount in self.credit if number == where)

    def held(self, where: int, uid: int | None = None) -> int:
        return sum(
            run["held"]
            for run in self.runs.values()
            if run["allocation"] == where and uid in (None, run["owner"])
        )

    def charged(self, where: int, uid: int | None = None) -> int:
        return sum(
            run["charged"] - run["refunded"]
            for run in self.runs.values()
            if run["allocation"] == where and uid in (None, run["owner"])
        )

    def charged_runs(self) -> list[Run]:
        """Return the runs with a charge."""
        return [number for number, run in self.runs.items() if run["charged"]]

    def free(self, where: int) -> int:
        """Return the credit that may leave the allocation."""
        return self.deposited(where) - self.charged(where) - self.held(where)

    def left(self, where: int) -> int:
        return self.free(where) + int(self.allocations[where]["limit"])

    @staticmethod
    def _is_same_request(before: w.SubmittedRequest, now: w.SubmittedRequest) -> bool:
        """Return True for the same report at any price, or an equal request without a report."""
        return now.report_digest == before.report_digest and (
            now.report_digest is not None or now.request == before.request
        )

    def _repeats(self, number: int) -> bool:
        """Return True if the last request is of the same report as the one with this number."""
        value = self.submitted[-1].report_digest
        return value is not None and value == self.submitted[number].report_digest

    def _repeated(self, number: int) -> str:
        self.same_as = number
        return "again"
