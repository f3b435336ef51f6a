"""What is free when: the machine from now on, if everybody who runs uses the whole time limit and every plan is kept."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol, TypeVar

W = TypeVar("W", contravariant=True)
"""What a job asks for."""
P = TypeVar("P")
"""What is given to it."""

FOR_EVER = 1 << 62
"""Later than any instant."""

Gap = tuple[int, int]
"""So many processors are free for so many seconds from now on."""


class Profile(Protocol[W, P]):
    """Any machine, from one instant on. Times are seconds since whatever the snapshot counts from."""

    def earliest(self, wanted: W, seconds: int, after: int) -> tuple[int, P] | None:
        """The first instant, not before `after`, from which what is wanted stays free for so many seconds, and what to take of it.

        None where it never does.
        """
        ...

    def take(self, placement: P, begin: int, end: int) -> None:
        """Keep it for somebody from `begin` until just before `end`. It must be free then: whoever takes asks `earliest` first."""
        ...


class Processors:
    """Identical processors as steps: `free[i]` of them from `times[i]` until the next step begins; the last one lasts for ever."""

    __slots__ = ("_known", "free", "size", "times")

    def __init__(self, size: int, now: int, taken: Iterable[tuple[int, int]] = ()) -> None:
        """`taken`: until when, and how many processors, of each job that runs; in the order of those ends."""
        self.size = size
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        self.times: list[int] = [now]
        self.free: list[int] = [size]
        busy: list[tuple[int, int]] = [(end, processors) for end, processors in taken if end > now]
        left = size - sum(processors for _, processors in busy)
        self.free[0] = left
        for end, processors in busy:
            left += processors
            if end == self.times[-1]:
                self.free[-1] = left
            else:
                self.times.append(end)
                self.free.append(left)

    def earliest(self, wanted: int, seconds: int, after: int) -> tuple[int, int] | None:
        """When so many processors stay free for so long; None for more than the machine has."""
        if wanted > self.size:
            return None
        times, free = self.times, self.free
        # What is taken is never given back, so for alike jobs the search goes on where it ended, unless somebody asks for earlier.
        since, found = self._known.get((wanted, seconds), (after, after))
        low = max(after, found) if after >= since else after
        step, last = max(bisect_right(times, low) - 1, 0), len(times)
        while True:
            while free[step] < wanted:
                step += 1
            begin = max(times[step], low)
            until, ahead = begin + seconds, step + 1
            while ahead < last and times[ahead] < until and free[ahead] >= wanted:
                ahead += 1
            if ahead == last or times[ahead] >= until:
                self._known[wanted, seconds] = after, begin
                return begin, wanted
            step = ahead

    def gaps(self) -> list[Gap]:
        """What is free from the first instant on, the narrowest and longest gap first, which may last for ever."""
        found: list[Gap] = []
        room, begin = self.free[0], self.times[0]
        for at, free in zip(self.times, self.free, strict=True):
            if free < room:
                found.append((room, at - begin))
                room = free
            if not room:
                break
        else:
            found.append((room, FOR_EVER))
        found.reverse()
        return found

    def take(self, placement: int, begin: int, end: int) -> None:
        """Keep so many processors from `begin` until just before `end`."""
        first = self._cut(begin)
        for step in range(first, self._cut(end)):
            self.free[step] -= placement

    def _cut(self, at: int) -> int:
        """The step that begins at this instant; makes it where there is none."""
        step = bisect_left(self.times, at)
        if step == len(self.times) or self.times[step] != at:
            self.times.insert(step, at)
            self.free.insert(step, self.free[step - 1])
        return step
