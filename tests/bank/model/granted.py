"""Granted requests in plain dictionaries; every figure is added up again from all of them."""

from __future__ import annotations

from typing import Any

from fairbank.bank import requests as w
from fairbank.cluster.job import Run


class Granted:
    """Granted requests, and all submitted ones. Requests are numbered from 0 in their order."""

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
        self.asked: list[w.SubmittedRequest] = []
        self.reverse: dict[int, Any] = {}
        """What takes back each entry, by the number that whoever asks was told."""
        self.words: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        """All terms, caps and roles up to now. `over` has the entries that may be undone then."""
        self.swept: set[int] = set()
        """Entries that only say that a time was over."""
        self.undone: dict[int, int] = {}
        """Entries that were taken back, and by which."""
        self.against: int | None = None
        """The entry because of which the last question, to take another back, was refused."""
        self.like: int | None = None

    def deposited(self, where: int) -> int:
        return sum(amount for number, amount in self.credit if number == where)

    def held(self, where: int, uid: int | None = None) -> int:
        return sum(
            run["held"]
            for run in self.runs.values()
            if run["where"] == where and uid in (None, run["owner"])
        )

    def charged(self, where: int, uid: int | None = None) -> int:
        return sum(
            run["charged"] - run["back"]
            for run in self.runs.values()
            if run["where"] == where and uid in (None, run["owner"])
        )

    def paid(self) -> list[Run]:
        """Return the runs with a charge."""
        return [number for number, run in self.runs.items() if run["charged"]]

    def free(self, where: int) -> int:
        """Return the credit that may leave the allocation."""
        return self.deposited(where) - self.charged(where) - self.held(where)

    def left(self, where: int) -> int:
        return self.free(where) + int(self.allocations[where]["limit"])

    @staticmethod
    def _is_the_same(before: w.SubmittedRequest, now: w.SubmittedRequest) -> bool:
        """One report is one however it was priced; a request without a report is itself."""
        return now.report_digest == before.report_digest and (
            now.report_digest is not None or now.request == before.request
        )

    def _repeats(self, number: int) -> bool:
        """Return whether the last request is of the same report as the one with this number."""
        said = self.asked[-1].report_digest
        return said is not None and said == self.asked[number].report_digest

    def _again(self, number: int) -> str:
        self.like = number
        return "again"
