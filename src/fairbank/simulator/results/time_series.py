"""Time series for figures: over time, and by job size, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts

STRETCHES = 256
"""Maximum number of intervals; there are at least half as many if there are as many seconds."""
EXACT_BITS = 6
"""Leading binary digits of a wait that are counted: waits are exact to 1 in 32."""


class BinnedSum:
    """Sum of an amount over time, for each of some equally long intervals from `begin` on.

    If STRETCHES intervals do not reach, they become twice as long. The sums are exact and do not
    depend on the order of the amounts.
    """

    def __init__(self, begin: int) -> None:
        self.begin, self.width = begin, 1
        self._inside = [0] * (STRETCHES + 1)
        self._change = [0] * (STRETCHES + 1)

    def add(self, since: int, until: int, amount: int) -> None:
        """Add an amount at each second of an interval.

        Args:
            since: begin of the interval in seconds, not before `begin`.
            until: end of the interval, excluded, not before `begin`.
            amount: amount at each second, such as processors.
        """
        while until - self.begin > self.width * STRETCHES:
            self._widen()
        first, into = divmod(since - self.begin, self.width)
        last, out_of = divmod(until - self.begin, self.width)
        inside, change = self._inside, self._change
        inside[first] -= into * amount
        inside[last] += out_of * amount
        change[first] += amount
        change[last] -= amount

    def sums(self) -> list[int]:
        """Return the sum of each interval up to the last that is not zero."""
        covered = accumulate(self._change)
        sums = [
            inside + all_along * self.width
            for inside, all_along in zip(self._inside, covered, strict=True)
        ]
        while sums and not sums[-1]:
            sums.pop()
        return sums

    def _widen(self) -> None:
        sums = self.sums()
        sums += [0] * (STRETCHES - len(sums))
        self.width *= 2
        self._inside = [
            *(one + other for one, other in zip(sums[::2], sums[1::2], strict=True)),
            *[0] * (STRETCHES // 2 + 1),
        ]
        self._change = [0] * (STRETCHES + 1)


class Stretch(NamedTuple):
    """Interval in seconds after the first submission, and the mean in it."""

    since: int
    until: int
    mean: float


class SizeClass(NamedTuple):
    """Jobs of about one size: range of processors, number, and statistics of waits."""

    least: int
    most: int
    jobs: int
    mean: float
    quarter: int
    median: int
    three_quarters: int


class _Waits:
    """Histogram of waits."""

    def __init__(self) -> None:
        self.jobs = self.total = 0
        self._counts: dict[int, int] = {}

    def add(self, wait: int) -> None:
        self.jobs += 1
        self.total += wait
        rough = max(wait.bit_length() - EXACT_BITS, 0)
        wait = wait >> rough << rough
        self._counts[wait] = self._counts.get(wait, 0) + 1

    def at(self, part: float) -> int:
        """Return the wait that this part of the jobs does not exceed."""
        below = 0
        for wait, count in sorted(self._counts.items()):
            below += count
            if below >= part * self.jobs:
                return wait
        return 0


class TimeSeries:
    """Time series of processors in use, pending jobs, and the processors that these want."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used, self.waiting, self.wanted = BinnedSum(0), BinnedSum(0), BinnedSum(0)
        self.end = 0
        self._waits: dict[int, _Waits] = {}

    def take(self, job_starts: JobStarts) -> None:
        """Add jobs that start to the series."""
        now, starts = job_starts
        if not self.end:  # the machine is empty, so the first job starts at once
            self.used, self.waiting, self.wanted = BinnedSum(now), BinnedSum(now), BinnedSum(now)
        for job in starts:
            self.end = max(self.end, now + job.run)
            self.used.add(now, now + job.run, job.processors)
            self.waiting.add(job.submitted, now, 1)
            self.wanted.add(job.submitted, now, job.processors)
            self._waits.setdefault((job.processors - 1).bit_length(), _Waits()).add(
                now - job.submitted
            )

    def over_time(self, what: BinnedSum) -> Iterator[Stretch]:
        """Yield each interval until the end, with the mean in it."""
        lasts, sums = self.end - what.begin, what.sums()
        for number, since in enumerate(range(0, lasts, what.width)):
            until = min(since + what.width, lasts)
            yield Stretch(
                since, until, (sums[number] if number < len(sums) else 0) / (until - since)
            )

    def sizes(self) -> list[SizeClass]:
        """Return the waits by processors: 1, 2, up to 4, up to 8, and so on."""
        return [
            SizeClass(
                (1 << power >> 1) + 1,
                1 << power,
                waits.jobs,
                waits.total / waits.jobs,
                *(waits.at(part) for part in (0.25, 0.5, 0.75)),
            )
            for power, waits in sorted(self._waits.items())
        ]
