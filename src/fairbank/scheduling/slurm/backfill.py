"""Slurm's backfill pass: who can start now without delaying those ahead, and when and where each of these is expected to start.

It goes through the queue once more. Whoever fits now, on nodes that are planned for nobody until it would end, starts. For everybody else
whole nodes are planned at the first time that is found, and those behind keep off them. All plans are forgotten before the next pass.

Slurm guesses a start, finds a plan in its way, and guesses anew from there, as long as bf_max_time lets it. Here the instants at which more
is free are gone through in order, without those at which too few nodes can be had: the same rules, and no limit of time is needed.

Source: docs/reference/slurm-rules.md, "Backfill"; RCAC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from fairbank.scheduling.machines.node_rules import PreemptBy
from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob, to_running
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest
from fairbank.scheduling.plan import LICENCES, NEVER_TESTED, PlannedStart, Reservation, SchedulePlan
from fairbank.scheduling.slurm.end_times import EndTimes
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.pass_rules import backfill_caps, holds_up, kinds
from fairbank.scheduling.slurm.planned_nodes import PlannedNodes
from fairbank.scheduling.slurm.preemption import place_by_preemption, select_preempted
from fairbank.scheduling.slurm.queue_order import (
    Entries,
    QueueEntry,
    placement_request,
    queue_entries,
)


def backfill(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    now: int,
    *,
    queued: Entries | None = None,
    begun_now: Iterable[int] = (),
) -> SchedulePlan[PendingJob, Placement]:
    """One cycle. A start whose limit was cut down towards its least time has the new limit in its job. `queued`: the queue, where it is
    known already. `begun_now`: whom the main pass before it has started, whose places nobody takes."""
    found = _Cycle(
        snapshot,
        parameters,
        now,
        queued or queue_entries(snapshot.machine, snapshot.queue.jobs(), now, shortest=True),
        begun_now,
    )
    for entry in found.entries:
        if found.over():
            break
        if found.considers(entry):
            found.tests(entry)
    return SchedulePlan(found.starts, found.planned(), found.reasons, NEVER_TESTED)


class _FoundStart(NamedTuple):
    """When a job could start, where, and what was left to it in that time."""

    at: int
    placement: Placement


class _Cycle:
    """The state of one cycle: its own copies, which nobody else sees."""

    def __init__(
        self,
        snapshot: OnNodes,
        parameters: SchedulerParameters,
        now: int,
        queued: Entries,
        begun_now: Iterable[int],
    ) -> None:
        self.nodes, self.parameters, self.now = snapshot.machine, parameters, now
        self.limits = snapshot.machine.limits.copy()
        self.room = snapshot.machine.room.copy()
        self.ahead = EndTimes(
            self.nodes.places, self.room, snapshot.running, now, linear=parameters.bf_window_linear
        )
        self.space = PlannedNodes(
            self.nodes.cluster.usable, now, parameters.window_seconds, parameters.bf_resolution
        )
        self.entries, self.reasons = queued[0], dict(queued[1])
        self.starts: list[PlannedStart[PendingJob, Placement]] = []
        self.expected: dict[int, Reservation[PendingJob, Placement]] = {}
        self.done = set(begun_now)
        self.caps = backfill_caps(parameters)
        self.plans = Counter[str | int]()
        self.tested = 0

    def over(self) -> bool:
        """Whether the cycle has done what it may."""
        asked = self.parameters
        return self.tested >= asked.bf_max_job_test or 0 < asked.bf_max_job_start <= len(
            self.starts
        )

    def planned(self) -> list[Reservation[PendingJob, Placement]]:
        """Of a job with plans in several partitions the earliest."""
        return [each for number, each in self.expected.items() if number not in self.done]

    def considers(self, entry: QueueEntry) -> bool:
        """Whether the entry is tested at all: not one of a user, partition or association that had as many as may be."""
        job = entry.job
        return job.number not in self.done and self.caps.takes(
            *kinds(self.parameters, job.user, job.account, entry.rules.name)
        )

    def tests(self, entry: QueueEntry) -> None:
        """Start it, plan it, or leave it. A limit is one of a job in a partition: in another it may start."""
        job = entry.job
        if (held := self.limits.holds(job, entry.rules.name)) is not None:
            if held != LICENCES:  # of these backfill says nothing
                self.reasons[job.number] = held
            if not self.parameters.assoc_limit_stop:
                return
        self.tested += 1
        request, keeps = placement_request(self.nodes, entry), self._keeps_room(entry)
        found = self._earliest(entry, request, later=keeps)
        if found is None:
            return
        beyond = (
            None if held is not None else self.limits.holds(job, entry.rules.name, found.placement)
        )
        if beyond is not None:
            self.reasons[job.number] = beyond
        elif found.at <= self.now:
            if held is None:
                self._starts(entry, found.placement)
        elif keeps:
            self._plans(entry, found)

    def _keeps_room(self, entry: QueueEntry) -> bool:
        """Whether room is kept for the job if it cannot start now: not for the young, the low and the soft, nor for more than is to be."""
        asked, job = self.parameters, entry.job
        return holds_up(asked, self.now - job.eligible, entry.priority) and not (
            entry.soft
            or (asked.bf_one_resv_per_job and self.plans[job.number])
            or (
                job.array is not None
                and self.plans[f"array {job.array}"] > asked.bf_max_job_array_resv
            )
            or 0 < asked.bf_job_part_count_reserve <= self.plans[f"partition {entry.rules.name}"]
        )

    def _earliest(
        self, entry: QueueEntry, request: PlacementRequest, *, later: bool
    ) -> _FoundStart | None:
        """The first start on nodes that neither plans nor reservations need until its end. `later`: also after now."""
        possible = entry.nodes & self.nodes.cluster.usable & request.possible()
        if possible.bit_count() < request.least or request.required & possible != request.required:
            return None
        seconds = entry.job.least_seconds(entry.rules)
        usable, hopeless = self._usable(entry.job, request, possible, self.now, self.now, seconds)
        found = self.ahead.place(request, usable, self.now) if hopeless <= self.now else None
        if found is None and self.nodes.preemption.by is not PreemptBy.NONE:
            found = self._instead(entry, request, possible, self.now + seconds)
        if found is not None:
            return _FoundStart(self.now, found)
        return self._later(entry.job, request, possible, seconds, hopeless) if later else None

    def _later(
        self,
        job: PendingJob,
        request: PlacementRequest,
        possible: NodeSet,
        seconds: int,
        hopeless: int,
    ) -> _FoundStart | None:
        """The same after now: at the end of a stretch of those who run, or when plans or reservations give nodes back."""
        enough = self.ahead.enough_from(request, possible)
        if enough is None:
            return None
        ends, since = iter(tuple(self.ahead.stretches)), self.now
        end = next(ends, None)
        while since <= self.now + self.parameters.window_seconds:
            hopeless = max(hopeless, enough)
            while end is not None and (end <= since or end < hopeless):
                since, end = max(since, end), next(ends, None)
            given = (
                hopeless
                if hopeless > max(since, enough)
                else self._given(possible, max(since, enough - 1))
            )
            if end is None and given is None:
                return None
            if given is not None and (end is None or given <= end):
                begin = at = given
            else:
                at = end or since
                begin = since if since >= enough else self._last_given(possible, since, at)
            usable, hopeless = self._usable(job, request, possible, begin, at, seconds)
            if hopeless <= begin and (found := self.ahead.place(request, usable, at)) is not None:
                return _FoundStart(self.ahead.needed(found, begin, at), found)
            since = at
        return None

    def _last_given(self, possible: NodeSet, since: int, until: int) -> int:
        """When they last do up to then; `since` where they do not. Instants at which too few had ended were passed over, and what was given
        back at one of them is not to be in the way."""
        found, given = since, self._given(possible, since)
        while given is not None and given <= until:
            found, given = given, self._given(possible, given)
        return found

    def _given(self, possible: NodeSet, after: int) -> int | None:
        """When plans or reservations next give some of the nodes back."""
        given, change = self.space.more(possible, after), self.nodes.reserved.next_change(after)
        return given if change is None else change if given is None else min(given, change)

    def _usable(
        self,
        job: PendingJob,
        request: PlacementRequest,
        possible: NodeSet,
        begin: int,
        at: int,
        seconds: int,
    ) -> tuple[NodeSet, int]:
        """The nodes that are left to it from `begin` until it ends that starts at `at`, and before when there are too few whatever else
        happens. A plan that is due at the same end as this one begins earlier, with its step: it has room by then all the same."""
        end, room = at + seconds, self.ahead.room_for(request.demand)
        by_then = room if at == begin else lambda instant: room(max(instant, at))
        usable, hopeless = self.space.window(possible, begin, end, request.least, by_then)
        if self.nodes.reserved:
            usable &= self.nodes.reserved.left(
                job, begin, end, resolution=self.parameters.bf_resolution
            )
        return usable, hopeless

    def _instead(
        self, entry: QueueEntry, request: PlacementRequest, possible: NodeSet, end: int
    ) -> Placement | None:
        """Where it goes now if some go first: whoever is there, but not where a plan is."""
        usable, _ = self.space.window(possible, self.now, end, request.least, lambda at: possible)
        usable &= self.nodes.reserved.left(
            entry.job, self.now, end, resolution=self.parameters.bf_resolution
        )
        kind, running = (entry.rules.name, entry.job.qos), [job for _, _, job in self.ahead.running]
        those = select_preempted(self.nodes, running, kind, usable, self.now, spared=self.done)
        return place_by_preemption(self.nodes, self.room, request, usable, those)

    def _starts(self, entry: QueueEntry, where: Placement) -> None:
        job = entry.job
        seconds = self._limit(entry, where.nodes)
        for each in [each for _, _, each in self.ahead.running if each.number in where.instead]:
            self.ahead.end(each)
        self.ahead.begin(to_running(job, where, self.now, seconds))
        self.limits.started(job, where)
        shorter = (
            job
            if seconds == job.seconds(entry.rules)
            else msgspec.structs.replace(job, limit=seconds)
        )
        self.starts.append(PlannedStart(shorter, where))
        self.done.add(job.number)
        self.reasons.pop(job.number, None)

    def _limit(self, entry: QueueEntry, nodes: NodeSet) -> int:
        """As long as it wants, unless it said that less will do: then until its nodes are planned for or reserved by others, in minutes."""
        longest, least = entry.job.seconds(entry.rules), entry.job.least_seconds(entry.rules)
        if least == longest:
            return longest
        claims = (
            self.space.first_conflict(nodes, self.now),
            self.nodes.reserved.next_claim(entry.job, nodes, self.now),
        )
        until = min((at for at in claims if at is not None), default=self.now + longest)
        return longest if until >= self.now + longest else max((until - self.now) // 60 * 60, least)

    def _plans(self, entry: QueueEntry, found: _FoundStart) -> None:
        """Its nodes are kept whole. What begins beyond the window is told and not kept."""
        job = entry.job
        told = self.expected.setdefault(job.number, Reservation(job, found.at, found.placement))
        if found.at < told.at:
            self.expected[job.number] = Reservation(job, found.at, found.placement)
        if found.at >= self.space.end:
            return
        self.plans[job.number] += 1
        self.plans[f"partition {entry.rules.name}"] += 1
        self.plans[f"array {job.array}"] += 1
        self.space.take(found.placement.nodes, found.at, found.at + job.least_seconds(entry.rules))
