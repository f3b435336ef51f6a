"""The starts of a schedule in the order of the queue, so that any two schedules of a trace can be compared job by job."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from fairbank.simulator.columns import Columns

LINES = 4_096


class Starts:
    """Whoever started; 24 bytes a job."""

    def __init__(self) -> None:
        self._numbers, self._names, self._at = array("q"), array("q"), array("q")

    def take(self, started: Columns) -> None:
        self._numbers.extend(started.numbers)
        self._names.extend(started.names)
        self._at.extend(started.at)

    def text(self) -> Iterator[str]:
        """One line a job, `job start`: its number in the trace, and seconds of the trace. Many lines at a time."""
        names, at = self._names, self._at
        order = sorted(range(len(names)), key=self._numbers.__getitem__)
        for begin in range(0, len(order), LINES):
            yield "".join(
                [f"{names[place]} {at[place]}\n" for place in order[begin : begin + LINES]]
            )

    def fingerprint(self) -> str:
        """SHA-256 of the text: equal schedules have equal ones."""
        from hashlib import sha256  # noqa: PLC0415  OpenSSL comes with it, for nothing where nobody asks for this

        digest = sha256()
        for lines in self.text():
            digest.update(lines.encode("ascii"))
        return digest.hexdigest()
