"""What the journal says of runs beside their rows: what agrees is forgotten, for a book may have millions."""

from __future__ import annotations

from collections.abc import Callable

from fairbank.bank.audit.finding import Findings
from fairbank.bank.run import RunRecord

RowAgain = Callable[[int], RunRecord | None]
"""The row of a run of the book once more, by the run's number; None where there is none."""


def no_row(number: int) -> None:
    """For where a run's row is shown after its last entry: then nobody asks for one again."""


class RunRows:
    """The runs of one book of which journal and row do not agree yet.

    They agree once the journal was read as far as the row goes. Rarely more follows of a run that was forgotten, a refund that was
    taken back for one; then its row tells how far the journal had come.
    """

    def __init__(self, findings: Findings, again: RowAgain) -> None:
        self._findings, self._again = findings, again
        self._due: dict[int, RunRecord] = {}
        self._rows: dict[int, RunRecord] = {}
        self._last = 0
        """The highest number of a row that was shown. They are shown in the order of their numbers where any is asked for again."""

    def due(self, number: int) -> RunRecord | None:
        """What the run's row must be by now; None where the journal did not open it."""
        run = self._due.get(number)
        if run is None and number <= self._last and number not in self._rows:
            run = self._again(number)
            if run is not None:
                self._due[number] = self._rows[number] = run
        return run

    def told(self, run: RunRecord) -> None:
        """An entry was read: this is what the run's row must be by now."""
        if self._rows.get(run.id) == run:
            del self._rows[run.id]
            self._due.pop(run.id, None)
        else:
            self._due[run.id] = run

    def show(self, row: RunRecord) -> None:
        """This is the run's row."""
        self._last = max(self._last, row.id)
        if self._due.get(row.id) == row:
            del self._due[row.id]
        else:
            self._rows[row.id] = row

    def check_left_over(self) -> None:
        """All entries were read and all rows shown: what does not agree now never will."""
        for number in sorted(self._due.keys() | self._rows.keys()):
            row, due = self._rows.get(number), self._due.get(number)
            if row is not None:
                self._findings.compare(f"the row of run {row.run}", row, due)
            elif due is not None:
                self._findings.add(f"the row of run {due.run} is missing")
