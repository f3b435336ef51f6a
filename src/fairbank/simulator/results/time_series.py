"""How a simulation went, for pictures: over time, and by the sizes of jobs. The memory it takes does not grow with the trace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from fairbank.simulator.engine.clock import JobStarts

STRETCHES = 256
"""At most so many stretches of time are told apart, and at least half as many where there are as many seconds."""
EXACT_BITS = 6
"""Waits are counted by so many leading binary digits: to one in 32."""


class BinnedSum:
    """Of what holds for some time, the sum over each of some equally long stretches of time, from `begin` on. Where STRETCHES of them
    are too short, they become twice as long. Exact, whatever the order in which it is told."""

    def __init__(self, begin: int) -> None:
        self.begin, self.width = begin, 1
        self._inside = [0] * (STRETCHES + 1)
        self._change = [0] * (STRETCHES + 1)

    def add(self, since: int, until: int, amount: int) -> None:
        """So much from one second until before another, none of them before `begin`."""
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
        """Of each stretch in which there is anything, and of those before."""
        covered = accumulate(self._change)
        found = [
            inside + all_along * self.width
            for inside, all_along in zip(self._inside, covered, strict=True)
        ]
        while found and not found[-1]:
            found.pop()
        return found

    def _widen(self) -> None:
        found = self.sums()
        found += [0] * (STRETCHES - len(found))
        self.width *= 2
        self._inside = [
            *(one + other for one, other in zip(found[::2], found[1::2], strict=True)),
            *[0] * (STRETCHES // 2 + 1),
        ]
        self._change = [0] * (STRETCHES + 1)


class Stretch(NamedTuple):
    """From one second after the first submission to another, and how much there was on average."""

    since: int
    until: int
    mean: float


class Size(NamedTuple):
    """Jobs of about one size: from so many processors to so many, how many jobs, and how long they waited."""

    least: int
    most: int
    jobs: int
    mean: float
    quarter: int
    median: int
    three_quarters: int


class _Waits:
    """How long jobs waited: a count for each length, roughly."""

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
        """At least this part of the jobs waited no longer."""
        below = 0
        for wait, count in sorted(self._counts.items()):
            below += count
            if below >= part * self.jobs:
                return wait
        return 0


class TimeSeries:
    """Takes what the clock tells. `used` sums processors at work, `waiting` jobs that wait, `wanted` the processors that these ask for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used, self.waiting, self.wanted = BinnedSum(0), BinnedSum(0), BinnedSum(0)
        self.end = 0
        self._waits: dict[int, _Waits] = {}

    def take(self, moment: JobStarts) -> None:
        now, starts = moment
        if not self.end:  # the machine is empty: whoever comes first starts at once
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
        """Each stretch of time until the end, and the mean in it."""
        lasts, sums = self.end - what.begin, what.sums()
        for number, since in enumerate(range(0, lasts, what.width)):
            until = min(since + what.width, lasts)
            yield Stretch(
                since, until, (sums[number] if number < len(sums) else 0) / (until - since)
            )

    def sizes(self) -> list[Size]:
        """Waits of jobs by their processors: 1, 2, up to 4, up to 8, and so on; none where there are no jobs."""
        return [
            Size(
                (1 << power >> 1) + 1,
                1 << power,
                found.jobs,
                found.total / found.jobs,
                *(found.at(part) for part in (0.25, 0.5, 0.75)),
            )
            for power, found in sorted(self._waits.items())
        ]
