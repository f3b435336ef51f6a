"""Rows of runs compared with the journal. Matching runs are forgotten: there may be millions."""

from __future__ import annotations

from collections.abc import Callable

from fairbank.bank.audit.findings import Findings
from fairbank.bank.run import RunRecord

RowAgain = Callable[[int], RunRecord | None]
"""Function that reads the row of a run once more, by the id of the run; None if it does not
exist.
"""


def no_row(number: int) -> None:
    """Return None: for an audit that reads the rows of runs after all entries, and none of them
    twice.
    """


class RunRows:
    """Runs of one journal whose row does not match the entries read so far.

    A run matches when the journal was read as far as its row goes. Then it is forgotten. In rare
    cases more entries follow, such as a refund and its undo; then its row is read once more.
    """

    def __init__(self, findings: Findings, again: RowAgain) -> None:
        self._findings, self._again = findings, again
        self._due: dict[int, RunRecord] = {}
        self._rows: dict[int, RunRecord] = {}
        self._last = 0
        """Highest id of a row that was shown."""

    def due(self, number: int) -> RunRecord | None:
        """Return the row that the entries of a run require so far; None if no entry opened the
        run.
        """
        run = self._due.get(number)
        if run is None and number <= self._last and number not in self._rows:
            run = self._again(number)
            if run is not None:
                self._due[number] = self._rows[number] = run
        return run

    def told(self, run: RunRecord) -> None:
        """Record the row that the entries of a run require after one more entry."""
        if self._rows.get(run.id) == run:
            del self._rows[run.id]
            self._due.pop(run.id, None)
        else:
            self._due[run.id] = run

    def show(self, row: RunRecord) -> None:
        """Record the row of a run in the store. Rows come in the order of their ids if `again` is
        used.
        """
        self._last = max(self._last, row.id)
        if self._due.get(row.id) == row:
            del self._due[row.id]
        else:
            self._rows[row.id] = row

    def check_left_over(self) -> None:
        """Report all runs that do not match. All entries were read and all rows were shown."""
        for number in sorted(self._due.keys() | self._rows.keys()):
            row, due = self._rows.get(number), self._due.get(number)
            if row is not None:
                self._findings.compare(f"the row of run {row.run}", row, due)
            elif due is not None:
                self._findings.add(f"the row of run {due.run} is missing")
