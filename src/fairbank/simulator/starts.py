"""The starts of a schedule in the order of the queue, so that any two schedules of a trace can be compared job by job."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from hashlib import sha256

from fairbank.simulator.clock import Moment

LINES = 4_096


class Starts:
    """Whoever starts, as the clock tells it; 16 bytes a job."""

    def __init__(self) -> None:
        self._names = array("q")
        self._at = array("q")

    def take(self, moment: Moment) -> None:
        names, at = self._names, self._at
        now, starts, _, _ = moment
        for job in starts:
            if job.number >= len(names):
                missing = [-1] * (job.number + 1 - len(names))
                names.extend(missing)
                at.extend(missing)
            names[job.number] = job.name
            at[job.number] = now

    def text(self) -> Iterator[str]:
        """One line a job, `job start`: its number in the trace, and seconds of the trace. Many lines at a time."""
        for begin in range(0, len(self._names), LINES):
            end = begin + LINES
            yield "".join(f"{name} {at}\n" for name, at in zip(self._names[begin:end], self._at[begin:end], strict=True))

    def fingerprint(self) -> str:
        """SHA-256 of the text: equal schedules have equal ones."""
        digest = sha256()
        for lines in self.text():
            digest.update(lines.encode("ascii"))
        return digest.hexdigest()
