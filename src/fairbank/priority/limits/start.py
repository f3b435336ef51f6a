"""Limits that hold a pending job: the first in Slurm's order (slurm-rules.md, "Limits").

Group limits are tested on each level up to root, others on the user's own association. Amounts are
whole minutes and whole counts. A job may reach a limit exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.limits.chain import Enforced, LimitChain, LimitOwner
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import (
    MINUTE_KINDS,
    Counts,
    LimitedJob,
    LimitTest,
    LimitUsage,
    QosLimits,
)


def limit_tests(job: LimitedJob, enforced: Enforced) -> Iterator[LimitTest]:
    """Yield the tests of all limits that concern `job`, in Slurm's order: first the limits on
    running jobs and on time, which need no nodes, then those on TRES.

    Limits on a TRES of which it takes nothing are left out.
    """
    if enforced.limits:
        for test in chain(_BeforeNodes(job, enforced).tests(), _AfterNodes(job, enforced).tests()):
            if test.holds or test.requested:
                yield test


class _BeforeNodes(LimitChain):
    _minutes: int | None = None
    """Time limit of the job, set when a limit on wall time is met, else that limit."""

    def tests(self) -> Iterator[LimitTest]:
        for place, qos in self.qoses():
            self._minutes = None
            yield from self._jobs(place, LimitKind.GRP_JOBS, qos.used)
            yield from self._group_wall(place)
            yield from self._jobs(place, LimitKind.MAX_JOBS_PER_ACCOUNT, qos.of_account)
            yield from self._jobs(place, LimitKind.MAX_JOBS_PER_USER, qos.of_user)
            yield from self._wall(place)
        self._minutes = None
        for place in self.associations():
            yield from self._jobs(place, LimitKind.GRP_JOBS, place.used)
            yield from self._group_wall(place)
            if place.own:
                if not self.has_set(LimitKind.MAX_JOBS_PER_ACCOUNT, LimitKind.MAX_JOBS_PER_USER):
                    yield from self._jobs(place, LimitKind.MAX_JOBS, place.used)
                yield from self._wall(place)

    def _jobs(self, place: LimitOwner, kind: LimitKind, used: LimitUsage) -> Iterator[LimitTest]:
        limit = self.limit(place, place.limits.jobs, kind)
        if limit is not None:
            yield place.test(kind, limit, requested=1, running=used.jobs, holds=used.jobs >= limit)

    def _group_wall(self, place: LimitOwner) -> Iterator[LimitTest]:
        if (
            self.job.time_overridden
            or (limit := self.limit(place, place.limits.wall, LimitKind.GRP_WALL)) is None
        ):
            return
        requested = self._time(limit, place.limits.wall.get(LimitKind.MAX_WALL))
        used = place.used.wall_minutes()
        # Slurm adds in 32 bits, so that no time limit at all, which is the highest number, passes
        # once a minute is used.
        holds = used >= limit or (self.enforced.safe and (used + requested) % (U32_MAX + 1) > limit)
        yield place.test(LimitKind.GRP_WALL, limit, requested=requested, used=used, holds=holds)

    def _wall(self, place: LimitOwner) -> Iterator[LimitTest]:
        if (
            self.job.time_overridden
            or (limit := self.limit(place, place.limits.wall, LimitKind.MAX_WALL)) is None
        ):
            return
        requested = self._time(limit)
        yield place.test(LimitKind.MAX_WALL, limit, requested=requested, holds=requested > limit)

    def _time(self, *limits: int | None) -> int:
        if self._minutes is None:
            self._minutes = self.job.charged(self.job.minutes_at_most(*limits))
        return self._minutes


class _AfterNodes(LimitChain):
    def tests(self) -> Iterator[LimitTest]:
        requested = self.for_minutes(
            self.job.charged(self.job.minutes_at_most(self.job.partition_default_minutes))
        )
        for place, qos in self.qoses():
            yield from self._of_the_group(place, requested)
            yield from self._of_the_job(place, requested)
            yield from self.at_least(place)
            yield from self._per_user_and_account(place, qos, requested)
        for place in self.associations():
            yield from self._of_the_group(place, requested)
            if place.own:
                yield from self._of_the_job(place, requested)

    def _of_the_group(self, place: LimitOwner, requested: Counts) -> Iterator[LimitTest]:
        free = self.job.usage_factor() == 0  # what is not charged finds nothing used
        used, running = ({}, {}) if free else (place.used.minutes(), place.used.run_minutes())
        yield from self._within(
            place, LimitKind.GRP_TRES_MINS, requested, running, used, safe=self.enforced.safe
        )
        yield from self._within(
            place, LimitKind.GRP_TRES, self._added_counts(place.used), place.used.counts
        )
        yield from self._within(place, LimitKind.GRP_TRES_RUN_MINS, requested, running, always=True)

    def _of_the_job(self, place: LimitOwner, requested: Counts) -> Iterator[LimitTest]:
        yield from self.at_most(place, LimitKind.MAX_TRES_MINS, requested)
        yield from self.at_most(place, LimitKind.MAX_TRES, self.job.counts)
        yield from self.at_most(place, LimitKind.MAX_TRES_PER_NODE, self.on_each_node())

    def _per_user_and_account(
        self, place: LimitOwner, qos: QosLimits, requested: Counts
    ) -> Iterator[LimitTest]:
        who = (
            (
                qos.of_account,
                LimitKind.MAX_TRES_PER_ACCOUNT,
                LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT,
            ),
            (qos.of_user, LimitKind.MAX_TRES_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_USER),
        )
        for used, at_once, to_come in who:
            yield from self._within(place, at_once, self._added_counts(used), used.counts)
            yield from self._within(place, to_come, requested, used.run_minutes(), always=True)

    def _added_counts(self, used: LimitUsage) -> Counts:
        """Return what the job adds: a node on which the owner's jobs run counts once.

        Before its nodes are known it may get all of these.
        """
        if "node" not in self.job.counts:
            return self.job.counts
        shared = len(self.job.nodes & used.nodes if self.job.is_placed else used.nodes)
        return {**self.job.counts, "node": max(self.job.counts["node"] - shared, 0)}

    def _within(
        self,
        place: LimitOwner,
        kind: LimitKind,
        requested: Counts,
        running: Counts,
        used: Counts | None = None,
        *,
        safe: bool = True,
        always: bool = False,
    ) -> Iterator[LimitTest]:
        """Yield the test of each TRES. It holds what is used up, and with `safe` also a job that
        would take too much together with the running ones.
        """
        for name, limit in self.limits(place, kind, always=always):
            amount, running_amount, used_amount = (
                amounts.get(name, 0) for amounts in (requested, running, used or {})
            )
            # Of nodes all that it asks for, also those that count already.
            own = amount if kind in MINUTE_KINDS else self.job.counts.get(name, 0)
            used_up = used is not None and amount > 0 and used_amount >= limit
            too_much = own > limit or (amount > 0 and amount + running_amount > limit - used_amount)
            yield place.test(
                kind,
                limit,
                requested=own,
                tres=name,
                used=used_amount,
                running=running_amount,
                holds=used_up or (safe and too_much),
            )
