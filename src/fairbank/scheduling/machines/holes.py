"""Processors as the gaps that a plan left: all that there is to know of them until somebody ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from fairbank.scheduling.machines.machine import (FOR_EVER, Gap, Left, Slot)
from fairbank.scheduling.machines.processors import W
from fairbank.core.types import made


class Gaps(Generic[W]):
    """What is left of them now, and when more newcomers start. Nobody ended since the plan, nor should have."""

    __slots__ = ("_gaps", "_now")

    def __init__(self, left: Left, now: int) -> None:
        self._now = now
        at, gaps = left
        self._gaps: Sequence[Gap] = (
            gaps if at == now else [(room, lasts - now + at) for room, lasts in gaps]
        )

    def now(self, job: W) -> Slot[int] | None:
        wanted, seconds = job.processors, job.limit
        for room, lasts in self._gaps:
            if wanted <= room:
                return (
                    made(Slot, (self._now, self._now + seconds, wanted))
                    if seconds <= lasts
                    else None
                )
        return None

    def take(self, job: W, slot: Slot[int]) -> None:
        self._gaps = without(self._gaps, slot.placement, slot.end - slot.begin)

    def gaps(self) -> Sequence[Gap]:
        return self._gaps

    def left(self) -> Left:
        return made(Left, (self._now, self._gaps))


def without(gaps: Sequence[Gap], processors: int, seconds: int) -> list[Gap]:
    """What is left of gaps when somebody who fits takes so many processors for so many seconds from now on."""
    found: list[Gap] = []
    rest = FOR_EVER
    for room, lasts in reversed(gaps):  # from the widest on
        left = room - processors
        if left > rest:
            left = rest
        if found and found[-1][0] == left:
            found.pop()
        if left:
            found.append((left, lasts))
        if (
            lasts >= seconds
        ):  # in this one it ends: those that last longer have what they had, but no more than this one
            rest, processors = left, 0
    found.reverse()
    return found
