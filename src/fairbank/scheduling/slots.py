"""Identical processors as Slurm's backfill plans them (facts, section 6.2): in steps of bf_resolution, as far as bf_window."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.by_priority import S
from fairbank.scheduling.machine import Running, Slot
from fairbank.scheduling.processors import Processors, Steps
from fairbank.scheduling.slurm_rules import expected_end


class Slots(Steps[S]):
    """Everybody must be gone before the step in which a plan begins, not just by then; a plan lasts to the end of a step.

    For what would begin behind the window no room is kept, nor for whoever has waited less than `least_age` seconds.
    """

    __slots__ = ("_came_by", "_resolution", "_window")

    def __init__(
        self,
        machine: Processors[S],
        running: Sequence[Running[S, int]],
        now: int,
        *,
        window: int,
        resolution: int,
        least_age: int = 0,
    ) -> None:
        super().__init__(machine.size, machine.free, running, now)
        self._window, self._resolution, self._came_by = (
            (now + window) // resolution * resolution,
            resolution,
            now - least_age,
        )

    def edge(self, begin: int) -> int:
        return begin // self._resolution * self._resolution - 1

    def reach(self, until: int) -> int:
        return until // self._resolution * self._resolution + self._resolution

    def overdue(self, ends: int) -> int:
        return expected_end(ends, self._now)

    def take(self, job: S, slot: Slot[int]) -> None:
        if slot.begin > self._now:
            if slot.begin >= self._window or job.submitted > self._came_by:
                return
            slot = slot._replace(end=-(-slot.end // self._resolution) * self._resolution)
        super().take(job, slot)
