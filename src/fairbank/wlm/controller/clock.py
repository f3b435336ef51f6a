"""Clocks and timers of the controller.

Limits are measured on a clock that goes on while the host is suspended, and that does not go back
when the host is booted: the state file has its last value.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.time_zone import parse_zone
from fairbank.wlm.core.effects import SetTimer
from fairbank.wlm.core.events import TimerFired
from fairbank.wlm.core.jobs import Moment

RECHECK_SECONDS = 10.0
"""Longest time between two looks at the clocks: the wall clock may be set."""
_SECOND = 1_000_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ClockReading(NamedTuple):
    """Value of the clock for limits, with the boot of the host and the seconds since that boot."""

    boot: str
    since_boot: int
    mono: int


class ControllerClock:
    """Wall clock, and the clock for limits.

    Both begin a second at the same time, unless the wall clock is set meanwhile. Otherwise the time
    that a run took would often be a second more or less than that from its start to its end.
    """

    def __init__(self, last: ClockReading | None) -> None:
        """Go on from the last reading of an earlier controller."""
        self._boot = _BOOT_ID.read_text().strip()
        self._offset = 0
        self._fraction = (time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) % _SECOND
        if last is not None:
            is_same_boot = last.boot == self._boot
            self._offset = last.mono - (last.since_boot if is_same_boot else self._since_boot())

    def now(self) -> Moment:
        return Moment(time.time_ns() // _SECOND, self._since_boot() + self._offset)

    def reading(self) -> ClockReading:
        since_boot = self._since_boot()
        return ClockReading(self._boot, since_boot, since_boot + self._offset)

    def _since_boot(self) -> int:
        return self._since_boot_ns() // _SECOND

    def _since_boot_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self._fraction

    def seconds_until(self, timer: SetTimer) -> float:
        """Return the seconds until a timer is due, on its clock; negative if it is late."""
        if timer.kind.is_wall:
            return timer.at - time.time()
        return timer.at - self._offset - self._since_boot_ns() / _SECOND


def local_zone() -> tzinfo:
    """Return the time zone of this host; a fixed offset if the zone has no name."""
    name = os.environ.get("TZ", "").removeprefix(":")
    name = name or os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    try:
        return parse_zone(name)
    except InvalidInput:
        return datetime.now(UTC).astimezone().tzinfo or UTC


HeapEntry = tuple[int, str, int, SetTimer]
"""Timer behind its time, kind and number, which can be compared."""


class Timers:
    """Timers of the core; each fires once.

    Invariant: `_waiting` has what is in the heaps, of which there is one for each clock, and
    `_wake_up` is set while there is a timer.
    """

    def __init__(self, clock: ControllerClock, fire: Callable[[TimerFired], None]) -> None:
        self._clock, self._fire = clock, fire
        self._heaps: dict[bool, list[HeapEntry]] = {True: [], False: []}
        self._waiting: set[SetTimer] = set()
        self._wake_up: asyncio.TimerHandle | None = None

    def set(self, timer: SetTimer) -> None:
        if timer not in self._waiting:
            self._waiting.add(timer)
            entry = (timer.at, timer.kind.value, timer.number, timer)
            heapq.heappush(self._heaps[timer.kind.is_wall], entry)
            self._arm()

    def clear(self) -> None:
        """Delete all timers."""
        self._heaps = {True: [], False: []}
        self._waiting.clear()
        self._arm()

    def _arm(self) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
        self._wake_up = None
        first = [heap[0][-1] for heap in self._heaps.values() if heap]
        if first:
            delay = min(max(min(map(self._clock.seconds_until, first)), 0.0), RECHECK_SECONDS)
            self._wake_up = asyncio.get_running_loop().call_later(delay, self._run)

    def _run(self) -> None:
        due: list[SetTimer] = []
        for heap in self._heaps.values():
            while heap and self._clock.seconds_until(heap[0][-1]) <= 0:
                due.append(heapq.heappop(heap)[-1])
        self._waiting.difference_update(due)
        for timer in due:
            self._fire(TimerFired(timer.kind, timer.number))
        self._arm()
