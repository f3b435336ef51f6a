"""Processors as the holes that a plan left: all that is known of them until a job ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from fairbank.core.types import new_tuple
from fairbank.scheduling.machines.machine import FOR_EVER, Hole, RemainingHoles, TimeSlot
from fairbank.scheduling.machines.processors import W


class Holes(Generic[W]):
    """Holes that are left now, while new jobs start. No job ended since the plan, and none should
    have.
    """

    __slots__ = ("_holes", "_now")

    def __init__(self, left: RemainingHoles, now: int) -> None:
        self._now = now
        at, gaps = left
        self._holes: Sequence[Hole] = (
            gaps if at == now else [(room, lasts - now + at) for room, lasts in gaps]
        )

    def slot_now(self, job: W) -> TimeSlot[int] | None:
        wanted, seconds = job.processors, job.limit
        for room, lasts in self._holes:
            if wanted <= room:
                return (
                    new_tuple(TimeSlot, (self._now, self._now + seconds, wanted))
                    if seconds <= lasts
                    else None
                )
        return None

    def take(self, job: W, slot: TimeSlot[int]) -> None:
        self._holes = reduce_holes(self._holes, slot.placement, slot.end - slot.begin)

    def holes(self) -> Sequence[Hole]:
        return self._holes

    def remaining(self) -> RemainingHoles:
        return new_tuple(RemainingHoles, (self._now, self._holes))


def reduce_holes(holes: Sequence[Hole], processors: int, seconds: int) -> list[Hole]:
    """Return what is left of holes when a job that fits takes processors.

    Args:
        holes: number of processors and seconds of each hole, the narrowest and longest first.
        processors: processors that the job takes.
        seconds: time that it takes them, from now on.
    """
    found: list[Hole] = []
    rest = FOR_EVER
    for room, lasts in reversed(holes):  # from the widest on
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
