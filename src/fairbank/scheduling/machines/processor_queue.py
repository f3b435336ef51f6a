"""Jobs that wait for processors, in the order of their numbers: for passes that look at the first, at each partition's, or for a gap's."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self

from fairbank.scheduling.machines.machine import FOR_EVER, Gap, StartsNow
from fairbank.scheduling.machines.processors import ProcessorJob, W

FEW = 24
"""So many are looked at one by one sooner than they are lined up."""
ROOM = 16
"""A line of them has room for so many at least."""
_NOBODY = 2 * FOR_EVER
"""In place of a limit where nobody waits: longer than any gap."""


class OrderedQueue(Generic[W]):
    """One line, from whose middle somebody may leave. Everybody in it may start."""

    __slots__ = ("_line",)
    reasons: Mapping[int, str] = {}

    @property
    def narrowest(self) -> int:
        """Nobody wants fewer processors. No more is said where only the first are looked at."""
        return 1

    def __init__(self) -> None:
        self._line: OrderedDict[int, W] = (
            OrderedDict()
        )  # a dict would look for its first entry among all that are gone

    def add(self, job: W) -> None:
        self._line[job.number] = job

    def remove(self, job: W) -> None:
        del self._line[job.number]

    def __len__(self) -> int:
        return len(self._line)

    def jobs(self) -> Iterator[W]:
        return iter(self._line.values())

    def line(self, now: int) -> Self:
        return self

    def __iter__(self) -> Iterator[tuple[int, W]]:
        return iter(self._line.items())

    def lines(self) -> Iterable[Iterator[tuple[int, W]]]:
        found: dict[int, list[tuple[int, W]]] = {}
        for turn in self:
            found.setdefault(turn[1].partition, []).append(turn)
        return map(iter, found.values())

    def first(self, after: int, ahead: StartsNow[W, Any]) -> tuple[int, W] | None:
        return next(
            (turn for turn in self if turn[0] > after and ahead.now(turn[1]) is not None), None
        )


class PartitionQueue(OrderedQueue[W]):
    """One line, and beside it a line for each partition."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[int, OrderedDict[int, W]] = {}

    def add(self, job: W) -> None:
        line = self._lines.get(job.partition)
        if line is None:
            line = self._lines[job.partition] = OrderedDict()
        self._line[job.number] = line[job.number] = job

    def remove(self, job: W) -> None:
        del self._line[job.number]
        line = self._lines[job.partition]
        del line[job.number]
        if not line:
            del self._lines[job.partition]

    def lines(self) -> Iterable[Iterator[tuple[int, W]]]:
        return [iter(line.items()) for line in self._lines.values()]


class WidthQueue(OrderedQueue[W]):
    """One line, and beside it a line for each number of processors, in which the first job that is short enough is found at once.

    Of thousands who wait, a pass that fills gaps so looks at one or two of each width (docs/decisions/0022). Newcomers join these lines
    when somebody looks at those who were there before them: many start as they come.
    """

    __slots__ = ("_lined_up", "_lines", "_narrowest", "_newcomers", "_widths")

    def __init__(self) -> None:
        super().__init__()
        self._newcomers: dict[int, W] = {}
        self._lined_up = -1
        """The last who joined a line: newcomers are behind."""
        self._widths: list[int] = []
        """Those that somebody waits for, in order. The lines of the others stay, empty: their width comes again."""
        self._lines: dict[int, LimitTree[W]] = {}
        self._narrowest = FOR_EVER
        """The fewest processors that anybody wants; 0: not known since the narrowest left."""

    def add(self, job: W) -> None:
        self._line[job.number] = self._newcomers[job.number] = job
        if job.processors < self._narrowest:
            self._narrowest = job.processors

    def remove(self, job: W) -> None:
        number, width = job.number, job.processors
        del self._line[number]
        if width == self._narrowest:
            self._narrowest = 0
        if self._newcomers.pop(number, None) is None:
            line = self._lines[width]
            line.remove(job)
            if not line.waiting:
                del self._widths[bisect_left(self._widths, width)]

    @property
    def narrowest(self) -> int:
        if not self._narrowest:
            newest = min([job.processors for job in self._newcomers.values()], default=FOR_EVER)
            self._narrowest = min(newest, self._widths[0]) if self._widths else newest
        return self._narrowest

    def first(self, after: int, ahead: StartsNow[W, Any]) -> tuple[int, W] | None:
        if (gaps := ahead.gaps()) is None:
            return super().first(after, ahead)
        found = self.fitting(after, gaps) if gaps and self._narrowest <= gaps[-1][0] else None
        return None if found is None else (found.number, found)

    def fitting(self, after: int, gaps: Sequence[Gap]) -> W | None:
        """The first job behind number `after` that fits one of the gaps, which come in the order of their width: the wider, the shorter."""
        if after >= self._lined_up and len(self._newcomers) <= FEW:
            return self._newcomer(after, gaps)
        if self._newcomers:
            self._line_up()
        found: W | None = None
        gap, (room, seconds) = 0, gaps[0]
        for width in self._widths:
            while width > room:
                gap += 1
                if gap == len(gaps):
                    return found
                room, seconds = gaps[gap]
            line = self._lines[width]
            if line.least[1] <= seconds:
                job = line.first(after, seconds)
                if job is not None and (found is None or job.number < found.number):
                    found = job
        return found

    def _newcomer(self, after: int, gaps: Sequence[Gap]) -> W | None:
        """The same among newcomers, from the last on: after an arrival hardly anybody is behind those who were left waiting."""
        found: W | None = None
        room, seconds = gaps[-1]
        for job in reversed(self._newcomers.values()):
            if job.number <= after:
                break
            if job.processors <= room and (job.limit <= seconds or fits(job, gaps)):
                found = job
        return found

    def _line_up(self) -> None:
        for job in self._newcomers.values():
            line = self._lines.get(job.processors)
            if line is None:
                line = self._lines[job.processors] = LimitTree()
            if not line.waiting:
                insort(self._widths, job.processors)
            line.add(job)
            self._lined_up = job.number
        self._newcomers.clear()


def fits(job: ProcessorJob, gaps: Sequence[Gap]) -> bool:
    """Whether it fits one of the gaps, which come in the order of their width: the wider, the shorter."""
    for room, seconds in gaps:
        if job.processors <= room:
            return job.limit <= seconds
    return False


class LimitTree(Generic[W]):
    """Jobs of one width in the order of the queue, under a tree: `least[i]` is the shortest limit in its stretch of the line.

    The tree lies in a list as a heap does: 1 is the root, 2i and 2i + 1 are below i, the last `room` entries are the places of the
    line. Places of jobs that left stay empty until the line needs more room than it has;
    `waiting` are still there.
    """

    __slots__ = ("_jobs", "_numbers", "_room", "least", "waiting")

    def __init__(self) -> None:
        self.waiting = 0
        self._lay([], ROOM)

    def add(self, job: W) -> None:
        if len(self._jobs) == self._room:
            waiting = [each for each in self._jobs if each is not None]
            self._lay(waiting, max(ROOM, 1 << (2 * len(waiting)).bit_length()))
        self.waiting += 1
        self._jobs.append(job)
        self._numbers.append(job.number)
        least, place = self.least, self._room + len(self._jobs) - 1
        while place and least[place] > job.limit:
            least[place] = job.limit
            place >>= 1

    def remove(self, job: W) -> None:
        place = bisect_left(self._numbers, job.number)
        self._jobs[place] = None
        self.waiting -= 1
        least = self.least
        place += self._room
        least[place] = _NOBODY
        while place > 1:
            place >>= 1
            shortest = least[2 * place]
            if least[2 * place + 1] < shortest:
                shortest = least[2 * place + 1]
            if least[place] == shortest:
                break
            least[place] = shortest

    def first(self, after: int, seconds: int) -> W | None:
        """The first job behind number `after` whose limit is at most so many seconds."""
        least, room = self.least, self._room
        if least[1] > seconds:
            return None
        place = bisect_right(self._numbers, after) + room
        if place >= 2 * room:
            return None
        while least[place] > seconds:
            while place & 1:  # the last of its pair: on to the next stretch, which may be wider
                place >>= 1
            if not place:
                return None
            place += 1
        while place < room:
            place *= 2
            place += least[place] > seconds
        return self._jobs[place - room]

    def _lay(self, waiting: list[W], room: int) -> None:
        self._jobs: list[W | None] = list(waiting)
        self._numbers = [job.number for job in waiting]
        self._room = room
        level = [job.limit for job in waiting] + [_NOBODY] * (room - len(waiting))
        self.least = level
        while len(level) > 1:
            level = list(map(min, level[::2], level[1::2]))
            self.least = level + self.least
        self.least = [_NOBODY, *self.least]
