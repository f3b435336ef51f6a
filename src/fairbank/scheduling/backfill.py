"""Slurm's backfill pass: who can start now without delaying those ahead, and when and where each of these is expected to start (facts,
section 6; seed 002).

It goes through the queue once more. Whoever fits now, on nodes that are planned for nobody until it would end, starts. For everybody else
whole nodes are planned at the first time that is found, and those behind keep off them. All plans are forgotten before the next pass.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from fairbank.scheduling.ahead import Ahead
from fairbank.scheduling.order import Entry, queue, requested
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.pending import Pending, begun
from fairbank.scheduling.placement.nodeset import NodeSet
from fairbank.scheduling.placement.placing import Request
from fairbank.scheduling.placement.room import Placement
from fairbank.scheduling.plan import Plan, Planned, Start
from fairbank.scheduling.preemption import place_instead, victims
from fairbank.scheduling.reserved import left, next_change
from fairbank.scheduling.situation import Situation
from fairbank.scheduling.space import Space

UNSAID = "None"
"""Slurm's word for a job of which the pass says nothing: what the main pass said of it stands."""


def backfill(situation: Situation, parameters: Parameters, now: int) -> Plan[Pending, Placement]:
    """One cycle. A start whose limit was cut down towards its least time has the new limit in its job."""
    found = _Cycle(situation, parameters, now)
    for entry in found.entries:
        if found.over():
            break
        if found.considers(entry):
            found.tests(entry)
    return Plan(found.starts, found.planned(), found.reasons, UNSAID)


class _Found(NamedTuple):
    """When a job could start, where, and what was left to it in that time."""

    at: int
    placement: Placement


class _Cycle:
    """The state of one cycle: its own copies, which nobody else sees."""

    def __init__(self, situation: Situation, parameters: Parameters, now: int) -> None:
        self.situation, self.parameters, self.now = situation, parameters, now
        self.limits = situation.limits.copy()
        self.room = situation.room.copy()
        self.ahead = Ahead(situation.machine, self.room, situation.running, now, linear=parameters.bf_window_linear)
        self.space = Space(situation.machine.usable, now, parameters.window_seconds, parameters.bf_resolution)
        self.entries, self.reasons = queue(situation, now, shortest=True)
        self.starts: list[Start[Pending, Placement]] = []
        self.expected: dict[int, Planned[Pending, Placement]] = {}
        self.done: set[int] = set()
        self.seen = Counter[tuple[str, ...]]()
        self.plans = Counter[str | int]()
        self.tested = 0

    def over(self) -> bool:
        """Whether the cycle has done what it may."""
        asked = self.parameters
        return self.tested >= asked.bf_max_job_test or 0 < asked.bf_max_job_start <= len(self.starts)

    def planned(self) -> list[Planned[Pending, Placement]]:
        """Of a job with plans in several partitions the earliest."""
        return [each for number, each in self.expected.items() if number not in self.done]

    def considers(self, entry: Entry) -> bool:
        """Whether the entry is tested at all: not one of a user, partition or association that had as many as may be."""
        job, partition, asked = entry.job, entry.rules.name, self.parameters
        if job.number in self.done:
            return False
        by_user = asked.bf_max_job_assoc or asked.bf_max_job_user
        whose = (job.user, job.account) if asked.bf_max_job_assoc else (job.user,)
        for kind, most in (
            (("user", *whose), by_user),
            (("partition", partition), asked.bf_max_job_part),
            (("user of partition", job.user, partition), asked.bf_max_job_user_part),
        ):
            if most:
                self.seen[kind] += 1
                if self.seen[kind] > most:
                    return False
        if (why := self.limits.holds(job, partition)) is not None:
            self.reasons[job.number] = why
            return asked.assoc_limit_stop
        return True

    def tests(self, entry: Entry) -> None:
        """Start it, plan it, or leave it."""
        self.tested += 1
        job, request = entry.job, requested(self.situation, entry)
        keeps = self._keeps_room(entry)
        held = job.number in self.reasons
        found = self._earliest(entry, request, later=keeps)
        if found is None:
            return
        if found.at <= self.now:
            if not held:
                self._starts(entry, found.placement)
        elif keeps:
            self._plans(entry, found)

    def _keeps_room(self, entry: Entry) -> bool:
        """Whether room is kept for the job if it cannot start now: not for the young, the low and the soft, nor for more than is to be."""
        asked, job = self.parameters, entry.job
        return not (
            entry.soft
            or self.now - job.eligible < asked.bf_min_age_reserve
            or entry.priority < asked.bf_min_prio_reserve
            or (asked.bf_one_resv_per_job and self.plans[job.number])
            or (job.array is not None and self.plans[f"array {job.array}"] > asked.bf_max_job_array_resv)
            or 0 < asked.bf_job_part_count_reserve <= self.plans[f"partition {entry.rules.name}"]
        )

    def _earliest(self, entry: Entry, request: Request, *, later: bool) -> _Found | None:
        """The first start on nodes that neither plans nor reservations need until its end. `later`: also after now."""
        job, begin = entry.job, self.now
        seconds = job.least_seconds(entry.rules)
        possible = entry.nodes & request.possible()
        if possible.bit_count() < request.least or request.required & possible != request.required:
            return None
        last = self.now + self.parameters.window_seconds
        while begin <= last:
            usable, more = self._usable(job, possible, begin, seconds, request.least)
            enough = usable.bit_count() >= request.least and request.required & usable == request.required
            at = self._first(entry, request, usable, begin) if enough else None
            if at is not None and (more is None or at.at <= more):
                if at.at <= self.now or not self._taken(job, at, seconds):
                    return at
                more = at.at if more is None or at.at > begin else more
            if more is None or not later or more <= begin:
                return None
            begin = more
        return None

    def _usable(self, job: Pending, possible: NodeSet, begin: int, seconds: int, least: int) -> tuple[NodeSet, int | None]:
        """The nodes that are left to it from `begin` on, and when that changes for the better."""
        end = begin + seconds
        reserved = left(self.situation, job, begin, end, resolution=self.parameters.bf_resolution)
        usable, more = self.space.window(possible, begin, end, least)
        if reserved != self.situation.machine.everybody and (change := next_change(self.situation, begin)) is not None:
            more = change if more is None else min(more, change)
        return usable & reserved, more

    def _first(self, entry: Entry, request: Request, usable: NodeSet, begin: int) -> _Found | None:
        found = self.ahead.first(request, usable, begin)
        if found is not None and found[0] <= self.now:
            return _Found(*found)
        if begin <= self.now:
            running = [job for _, _, job in self.ahead.running]
            those = victims(self.situation, running, (entry.rules.name, entry.job.qos), usable, self.now)
            if (instead := place_instead(self.situation, self.room, request, usable, those)) is not None:
                return _Found(begin, instead)
        return None if found is None else _Found(*found)

    def _taken(self, job: Pending, found: _Found, seconds: int) -> bool:
        """Whether plans or reservations need some of the nodes after all, now that it is known when it would start."""
        nodes, end = found.placement.nodes, found.at + seconds
        free = left(self.situation, job, found.at, end, resolution=self.parameters.bf_resolution)
        return nodes & free != nodes or self.space.overlaps(nodes, found.at, end)

    def _starts(self, entry: Entry, where: Placement) -> None:
        job = entry.job
        seconds = self._limit(entry, where.nodes)
        for each in [each for _, _, each in self.ahead.running if each.number in where.instead]:
            self.ahead.end(each)
        self.ahead.begin(begun(job, where, self.now, seconds))
        self.limits.started(job, entry.rules.name)
        shorter = job if seconds == job.seconds(entry.rules) else msgspec.structs.replace(job, limit=seconds)
        self.starts.append(Start(shorter, where))
        self.done.add(job.number)
        self.reasons.pop(job.number, None)

    def _limit(self, entry: Entry, nodes: NodeSet) -> int:
        """As long as it wants, unless it said that less will do: then until the next plan for its nodes, in whole minutes."""
        longest, least = entry.job.seconds(entry.rules), entry.job.least_seconds(entry.rules)
        conflict = self.space.first_conflict(nodes, self.now)
        if least == longest or conflict is None or conflict >= self.now + longest:
            return longest
        return max((conflict - self.now) // 60 * 60, least)

    def _plans(self, entry: Entry, found: _Found) -> None:
        """Its nodes are kept whole. What begins beyond the window is told and not kept."""
        job = entry.job
        told = self.expected.setdefault(job.number, Planned(job, found.at, found.placement))
        if found.at < told.at:
            self.expected[job.number] = Planned(job, found.at, found.placement)
        if found.at > self.now + self.parameters.window_seconds:
            return
        self.plans[job.number] += 1
        self.plans[f"partition {entry.rules.name}"] += 1
        self.plans[f"array {job.array}"] += 1
        self.space.take(found.placement.nodes, found.at, found.at + job.least_seconds(entry.rules))
