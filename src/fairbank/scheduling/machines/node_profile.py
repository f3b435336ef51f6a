"""Nodes over time, for policies that make reservations. This is the simple way: it tests every time
of a change.

A reservation keeps the time of a job, not its nodes: the job gets nodes when that time comes. Each
slot is therefore tested together with all reservations, each of them on the nodes that are free at
its time. A slot is free if all of these still fit. With nodes chosen in advance, jobs would block
each other although enough nodes are free.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from fairbank.scheduling.machines.machine import TimeSlot
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_table import NodeTable
from fairbank.scheduling.slurm.reservation_rules import ReservationRules


class PlacementRules(Protocol):
    """Functions of `nodes.Nodes` that the profile needs."""

    cluster: NodeTable
    free: FreeResources
    reservations: ReservationRules

    def placement_at(
        self, job: PendingJob, partition: str, free: FreeResources, begin: int
    ) -> Placement | None: ...

    def seconds(self, job: PendingJob, placement: Placement) -> int: ...


class _FutureStart(NamedTuple):
    """Start of a job that starts now or has a reservation. Lists are in the order of `begin`, then
    of reservation.
    """

    begin: int
    position: int
    end: int
    job: PendingJob
    partition: str


_Steps = list[tuple[int, FreeResources]]
"""Free resources from each time on."""


class NodeProfile:
    """Free resources of nodes at all times from now on."""

    def __init__(self, nodes: PlacementRules, running: Sequence[Active], now: int) -> None:
        self._nodes, self._now = nodes, now
        self._ends = [(max(job.ends, now + 1), job.placement) for job in running]
        self._ends.sort(key=_time)
        self._future_starts: list[_FutureStart] = []
        self._steps = self._simulate([]) or []

    def slot_now(self, job: PendingJob) -> TimeSlot[Placement] | None:
        return next(
            filter(None, (self._slot(job, name, self._now) for name in job.partitions)), None
        )

    def earliest_slot(self, job: PendingJob) -> TimeSlot[Placement] | None:
        times = {at for at, _ in self._steps}
        times.update(
            int(at)
            for reservation, _ in self._nodes.reservations
            for at in (reservation.begin, reservation.end)
            if at > self._now
        )
        slots = (self._slot(job, name, at) for at in sorted(times) for name in job.partitions)
        return next(filter(None, slots), None)

    def take(self, job: PendingJob, slot: TimeSlot[Placement]) -> None:
        insort(self._future_starts, self._future_start(job, slot))
        self._steps = self._simulate(self._future_starts) or []

    def holes(self) -> None:
        return None

    def _future_start(self, job: PendingJob, slot: TimeSlot[Placement]) -> _FutureStart:
        return _FutureStart(
            slot.begin, len(self._future_starts), slot.end, job, slot.placement.partition
        )

    def _slot(self, job: PendingJob, partition: str, begin: int) -> TimeSlot[Placement] | None:
        _, free = self._steps[bisect_right(self._steps, begin, key=_time) - 1]
        placement = self._nodes.placement_at(job, partition, free, begin)
        if placement is None:
            return None
        slot = TimeSlot(begin, begin + self._nodes.seconds(job, placement), placement)
        starts = self._future_starts.copy()
        insort(starts, self._future_start(job, slot))
        return None if self._simulate(starts) is None else slot

    def _simulate(self, kept: list[_FutureStart]) -> _Steps | None:
        """Return the free resources over time if each of these jobs gets nodes when its time comes;
        None if one does not fit then.
        """
        steps: _Steps = []
        free, ends = self._nodes.free.copy(), self._ends.copy()
        for at, beginning in _times(self._now, ends, kept):
            while ends and ends[0][0] <= at:
                free.give(ends.pop(0)[1])
            for start in beginning:
                placement = self._nodes.placement_at(start.job, start.partition, free, at)
                if placement is None:
                    return None
                free.take(placement)
                insort(ends, (start.end, placement), key=_time)
            steps.append((at, free.copy()))
        return steps


def _times(
    now: int, ends: Sequence[tuple[int, Placement]], kept: Sequence[_FutureStart]
) -> Iterator[tuple[int, list[_FutureStart]]]:
    """Yield each time at which a job ends or begins, with the jobs that begin then."""
    beginning: dict[int, list[_FutureStart]] = {now: []}
    for at in (*(at for at, _ in ends), *(each.end for each in kept)):
        beginning.setdefault(at, [])
    for each in kept:
        beginning.setdefault(each.begin, []).append(each)
    return iter(sorted(beginning.items()))


def _time(step: tuple[int, object]) -> int:
    return step[0]
