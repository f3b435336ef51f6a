"""Identical processors as Slurm's backfill plans them (facts, section 6.2): in steps of bf_resolution, as far as bf_window."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.machine import Running, Slot
from fairbank.scheduling.processors import Processors, Steps, W


class Slots(Steps[W]):
    """Whoever starts now must be gone before the step in which a plan begins, not just by then; a plan lasts to the end of a step.

    For what would begin behind the window no room is kept.
    """

    __slots__ = ("_resolution", "_window")

    def __init__(self, machine: Processors[W], running: Sequence[Running[W, int]], now: int, *, window: int, resolution: int) -> None:
        super().__init__(machine.size, machine.free, running, now)
        self._window, self._resolution = now + window, resolution

    def edge(self, begin: int) -> int:
        return begin // self._resolution * self._resolution - 1

    def take(self, job: W, slot: Slot[int]) -> None:
        if slot.begin > self._now:
            if slot.begin >= self._window:
                return
            slot = slot._replace(end=-(-slot.end // self._resolution) * self._resolution)
        super().take(job, slot)
