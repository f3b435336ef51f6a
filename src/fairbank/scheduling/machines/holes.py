"""Processors as the gaps that a plan left: all that there is to know of them until somebody ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import FOR_EVER, Gap, RemainingHoles, TimeSlot
from fairbank.scheduling.machines.processors import W


class Holes(Generic[W]):
    """What is left of them now, and when more newcomers start. Nobody ended since the plan, nor should have."""

    __slots__ = ("_gaps", "_now")

    def __init__(self, left: RemainingHoles, now: int) -> None:
        self._now = now
        at, gaps = left
        self._gaps: Sequence[Gap] = (
            gaps if at == now else [(room, lasts - now + at) for room, lasts in gaps]
        )

    def now(self, job: W) -> TimeSlot[int] | None:
        wanted, seconds = job.processors, job.limit
        for room, lasts in self._gaps:
            if wanted <= room:
                return (
                    new_tuple(TimeSlot, (self._now, self._now + seconds, wanted))
                    if seconds <= lasts
                    else None
                )
        return None

    def take(self, job: W, slot: TimeSlot[int]) -> None:
        self._gaps = reduce_holes(self._gaps, slot.placement, slot.end - slot.begin)

    def gaps(self) -> Sequence[Gap]:
        return self._gaps

    def left(self) -> RemainingHoles:
        return new_tuple(RemainingHoles, (self._now, self._gaps))


def reduce_holes(gaps: Sequence[Gap], processors: int, seconds: int) -> list[Gap]:
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
