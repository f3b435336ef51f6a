"""Who started when, as columns: whatever adds up jobs by the thousand does so much faster than job by job."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts
from fairbank.simulator.traces.workload import TraceJob


class Columns(NamedTuple):
    """The jobs that started, in the order in which they did; `at` is when, the others are columns of `Job`."""

    at: Sequence[int]
    numbers: Sequence[int]
    submitted: Sequence[int]
    processors: Sequence[int]
    runs: Sequence[int]
    names: Sequence[int]
    users: Sequence[int]
    groups: Sequence[int]


def in_columns(moments: Sequence[JobStarts]) -> Columns:
    """The columns of some moments: at least one, and at each somebody starts."""
    of = dict(
        zip(
            TraceJob._fields,
            zip(*[job for _, starts in moments for job in starts], strict=True),
            strict=True,
        )
    )
    return Columns(
        at=[now for now, starts in moments for _ in starts],
        numbers=of["number"],
        submitted=of["submitted"],
        processors=of["processors"],
        runs=of["run"],
        names=of["name"],
        users=of["user"],
        groups=of["group"],
    )


LINES = 4_096


class ScheduleStarts:
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
