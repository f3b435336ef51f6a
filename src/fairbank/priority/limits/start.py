"""Limits that hold a pending job: the first in Slurm's order (slurm-rules.md, "Limits").

Group limits are tested on each level up to root, others on the user's own association. Amounts are
whole minutes and whole counts. A job may reach a limit exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.limits.chain import ChainLink, Enforced, Walk
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import Counts, LimitedJob, LimitHold, LimitUsage, QosLimits


def holding(job: LimitedJob, enforced: Enforced) -> LimitHold | None:
    """Return the limit that holds `job`, or None: first those that need no nodes, then the rest."""
    return before_nodes(job, enforced) or after_nodes(job, enforced)


def before_nodes(job: LimitedJob, enforced: Enforced) -> LimitHold | None:
    """Return the first limit on running jobs and on time, tested before nodes are selected."""
    return next(_BeforeNodes(job, enforced).holds(), None) if enforced.limits else None


def after_nodes(job: LimitedJob, enforced: Enforced) -> LimitHold | None:
    """Return the first limit on TRES that holds `job`, tested when its nodes are known."""
    return next(_AfterNodes(job, enforced).holds(), None) if enforced.limits else None


class _BeforeNodes(Walk):
    _minutes: int | None = None
    """Time limit of the job, set when a limit on wall time is met, else that limit."""

    def holds(self) -> Iterator[LimitHold]:
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
                if not self.took(LimitKind.MAX_JOBS_PER_ACCOUNT, LimitKind.MAX_JOBS_PER_USER):
                    yield from self._jobs(place, LimitKind.MAX_JOBS, place.used)
                yield from self._wall(place)

    def _jobs(self, place: ChainLink, kind: LimitKind, used: LimitUsage) -> Iterator[LimitHold]:
        limit = self.limit(place, place.limits.jobs, kind)
        if limit is not None and used.jobs >= limit:
            yield place.hold(kind, limit, asked=1, running=used.jobs)

    def _group_wall(self, place: ChainLink) -> Iterator[LimitHold]:
        if (
            self.job.time_overridden
            or (limit := self.limit(place, place.limits.wall, LimitKind.GRP_WALL)) is None
        ):
            return
        asked, used = (
            self._time(limit, place.limits.wall.get(LimitKind.MAX_WALL)),
            place.used.wall_minutes(),
        )
        # Slurm adds in 32 bits, so that no time limit at all, which is the highest number, passes
        # once a minute is used.
        if used >= limit or (self.enforced.safe and (used + asked) % (U32_MAX + 1) > limit):
            yield place.hold(LimitKind.GRP_WALL, limit, asked=asked, used=used)

    def _wall(self, place: ChainLink) -> Iterator[LimitHold]:
        if (
            self.job.time_overridden
            or (limit := self.limit(place, place.limits.wall, LimitKind.MAX_WALL)) is None
        ):
            return
        if (asked := self._time(limit)) > limit:
            yield place.hold(LimitKind.MAX_WALL, limit, asked=asked)

    def _time(self, *limits: int | None) -> int:
        if self._minutes is None:
            self._minutes = self.job.charged(self.job.minutes_at_most(*limits))
        return self._minutes


class _AfterNodes(Walk):
    def holds(self) -> Iterator[LimitHold]:
        asked = self.for_minutes(
            self.job.charged(self.job.minutes_at_most(self.job.partition_default_minutes))
        )
        for place, qos in self.qoses():
            yield from self._of_the_group(place, asked)
            yield from self._of_the_job(place, asked)
            yield from self.short(place)
            yield from self._of_somebody(place, qos, asked)
        for place in self.associations():
            yield from self._of_the_group(place, asked)
            if place.own:
                yield from self._of_the_job(place, asked)

    def _of_the_group(self, place: ChainLink, asked: Counts) -> Iterator[LimitHold]:
        free = self.job.usage_factor() == 0  # what is not charged finds nothing used
        used, running = ({}, {}) if free else (place.used.minutes(), place.used.run_minutes())
        yield from self._within(
            place, LimitKind.GRP_TRES_MINS, asked, running, used, safe=self.enforced.safe
        )
        yield from self._within(
            place, LimitKind.GRP_TRES, self._beside(place.used), place.used.counts
        )
        yield from self._within(place, LimitKind.GRP_TRES_RUN_MINS, asked, running, always=True)

    def _of_the_job(self, place: ChainLink, asked: Counts) -> Iterator[LimitHold]:
        yield from self.beyond(place, LimitKind.MAX_TRES_MINS, asked)
        yield from self.beyond(place, LimitKind.MAX_TRES, self.job.counts)
        yield from self.beyond(place, LimitKind.MAX_TRES_PER_NODE, self.on_each_node())

    def _of_somebody(self, place: ChainLink, qos: QosLimits, asked: Counts) -> Iterator[LimitHold]:
        who = (
            (
                qos.of_account,
                LimitKind.MAX_TRES_PER_ACCOUNT,
                LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT,
            ),
            (qos.of_user, LimitKind.MAX_TRES_PER_USER, LimitKind.MAX_TRES_RUN_MINS_PER_USER),
        )
        for used, at_once, to_come in who:
            yield from self._within(place, at_once, self._beside(used), used.counts)
            yield from self._within(place, to_come, asked, used.run_minutes(), always=True)

    def _beside(self, used: LimitUsage) -> Counts:
        """Return what the job adds: a node on which the owner's jobs run counts once."""
        new = self.job.counts.get("node", 0) - len(self.job.nodes & used.nodes)
        if "node" in self.job.counts:
            return {**self.job.counts, "node": max(new, 0)}
        return self.job.counts

    def _within(
        self,
        place: ChainLink,
        kind: LimitKind,
        asked: Counts,
        running: Counts,
        used: Counts | None = None,
        *,
        safe: bool = True,
        always: bool = False,
    ) -> Iterator[LimitHold]:
        """Yield holds for each TRES that is used up, and with `safe` for each of which the job and
        the running ones would take too much.
        """
        for name, limit in self.limits(place, kind, always=always):
            wish, busy, gone = (amounts.get(name, 0) for amounts in (asked, running, used or {}))
            used_up = used is not None and wish > 0 and gone >= limit
            too_much = wish > limit or (wish > 0 and wish + busy > limit - gone)
            if used_up or (safe and too_much):
                yield place.hold(kind, limit, asked=wish, tres=name, used=gone, running=busy)
