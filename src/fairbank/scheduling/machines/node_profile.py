"""Nodes from now on, for policies that keep room for jobs: the plain way, which looks at every instant at which something changes.

What is kept for a job is its time; its nodes it gets when that comes. So each job that is looked at is tried beside all for whom room is
kept, each of them on what is free when its time comes: it has a place where all of these still have theirs. With nodes that were
chosen beforehand, jobs would be in each other's way although enough nodes are free.
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
    """What says where a job goes (`nodes.Nodes`)."""

    cluster: NodeTable
    room: FreeResources
    reserved: ReservationRules

    def where(
        self, job: PendingJob, partition: str, room: FreeResources, begin: int
    ) -> Placement | None: ...

    def seconds(self, job: PendingJob, placement: Placement) -> int: ...


class _Kept(NamedTuple):
    """Room for a job. They are in the order of `begin`, and then in that in which they were taken."""

    begin: int
    turn: int
    end: int
    job: PendingJob
    partition: str


_Steps = list[tuple[int, FreeResources]]
"""What is free from each instant on."""


class NodeProfile:
    """The rooms of all instants from now on."""

    def __init__(self, nodes: PlacementRules, running: Sequence[Active], now: int) -> None:
        self._nodes, self._now = nodes, now
        self._ends = [(max(each.ends, now + 1), each.placement) for each in running]
        self._ends.sort(key=_instant)
        self._kept: list[_Kept] = []
        self._steps = self._through([]) or []

    def now(self, job: PendingJob) -> TimeSlot[Placement] | None:
        return next(
            filter(None, (self._slot(job, name, self._now) for name in job.partitions)), None
        )

    def earliest(self, job: PendingJob) -> TimeSlot[Placement] | None:
        instants = {at for at, _ in self._steps}
        instants.update(
            int(at)
            for each, _ in self._nodes.reserved
            for at in (each.begin, each.end)
            if at > self._now
        )
        slots = (self._slot(job, name, at) for at in sorted(instants) for name in job.partitions)
        return next(filter(None, slots), None)

    def take(self, job: PendingJob, slot: TimeSlot[Placement]) -> None:
        insort(self._kept, self._keeping(job, slot))
        self._steps = self._through(self._kept) or []

    def gaps(self) -> None:
        return None

    def _keeping(self, job: PendingJob, slot: TimeSlot[Placement]) -> _Kept:
        return _Kept(slot.begin, len(self._kept), slot.end, job, slot.placement.partition)

    def _slot(self, job: PendingJob, partition: str, begin: int) -> TimeSlot[Placement] | None:
        _, room = self._steps[bisect_right(self._steps, begin, key=_instant) - 1]
        found = self._nodes.where(job, partition, room, begin)
        if found is None:
            return None
        slot = TimeSlot(begin, begin + self._nodes.seconds(job, found), found)
        kept = self._kept.copy()
        insort(kept, self._keeping(job, slot))
        return None if self._through(kept) is None else slot

    def _through(self, kept: list[_Kept]) -> _Steps | None:
        """The rooms, with each of those on its nodes when its time comes; None where one of them does not fit then."""
        steps: _Steps = []
        room, ends = self._nodes.room.copy(), self._ends.copy()
        for at, beginning in _instants(self._now, ends, kept):
            while ends and ends[0][0] <= at:
                room.give(ends.pop(0)[1])
            for each in beginning:
                where = self._nodes.where(each.job, each.partition, room, at)
                if where is None:
                    return None
                room.take(where)
                insort(ends, (each.end, where), key=_instant)
            steps.append((at, room.copy()))
        return steps


def _instants(
    now: int, ends: Sequence[tuple[int, Placement]], kept: Sequence[_Kept]
) -> Iterator[tuple[int, list[_Kept]]]:
    """Every instant at which somebody ends or begins, and who begins then."""
    beginning: dict[int, list[_Kept]] = {now: []}
    for at in (*(at for at, _ in ends), *(each.end for each in kept)):
        beginning.setdefault(at, [])
    for each in kept:
        beginning.setdefault(each.begin, []).append(each)
    return iter(sorted(beginning.items()))


def _instant(step: tuple[int, object]) -> int:
    return step[0]
