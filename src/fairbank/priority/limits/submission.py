"""Limits that refuse a job at submission, and limits that end a running one: the first in Slurm's
order (slurm-rules.md, "Limits").

Limits on the number of submitted jobs always refuse. The others only hold a job, unless its QOS
denies what can never start (DenyOnLimit), or it has no QOS: then the request of the job is
compared, without the usage of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from fairbank.priority.limits.chain import Enforced, LimitChain, LimitOwner
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import Counts, LimitedJob, LimitTest, LimitUsage, QosLimits


def refusing_limit(job: LimitedJob, enforced: Enforced, tasks: int = 1) -> LimitTest | None:
    """Return the limit that refuses a job at its submission, or None.

    Args:
        job: the job with its requested resources.
        enforced: without its `limits` no job is refused.
        tasks: number of tasks of an array; 1 for another job.
    """
    if not enforced.limits:
        return None
    return next((test for test in _Submitting(job, enforced, tasks).tests() if test.holds), None)


class _Submitting(LimitChain):
    def __init__(self, job: LimitedJob, enforced: Enforced, tasks: int) -> None:
        super().__init__(job, enforced)
        self._tasks = tasks
        qoses = job.qoses()
        self._strict = not qoses or any(qos.deny_on_limit for qos in qoses)
        # A job without a time limit will take the lowest of those that it meets.
        timed = self._strict and job.limit_minutes is not None and not job.time_overridden
        self._asked: Counts = self.for_minutes(job.limit_minutes or 0) if timed else {}
        self._minutes = (job.limit_minutes or 0) if timed else 0

    def tests(self) -> Iterator[LimitTest]:
        for place, qos in self.qoses():
            yield from self._of_qos(place, qos)
        for place in self.associations():
            yield from self._of_association(place)

    def _of_qos(self, place: LimitOwner, qos: QosLimits) -> Iterator[LimitTest]:
        if self._strict:
            yield from self.at_most(place, LimitKind.MAX_TRES_PER_ACCOUNT, self.job.counts)
            yield from self.at_most(place, LimitKind.MAX_TRES_PER_USER, self.job.counts)
            yield from self.at_most(place, LimitKind.GRP_TRES, self.job.counts)
        yield from self._submitted(place, LimitKind.GRP_SUBMIT_JOBS, qos.used)
        for kind in (LimitKind.MAX_TRES_MINS, LimitKind.GRP_TRES_MINS, LimitKind.GRP_TRES_RUN_MINS):
            yield from self.at_most(place, kind, self._asked)
        yield from self._wall(place, LimitKind.MAX_WALL)
        yield from self._wall(place, LimitKind.GRP_WALL)
        yield from self._of_the_job(place)
        yield from self._submitted(place, LimitKind.MAX_SUBMIT_JOBS_PER_ACCOUNT, qos.of_account)
        yield from self._submitted(place, LimitKind.MAX_SUBMIT_JOBS_PER_USER, qos.of_user)
        if self._strict:
            yield from self.at_least(place)

    def _of_association(self, place: LimitOwner) -> Iterator[LimitTest]:
        if self._strict:
            yield from self.at_most(place, LimitKind.GRP_TRES, self.job.counts)
        yield from self._submitted(place, LimitKind.GRP_SUBMIT_JOBS, place.used)
        for kind in (LimitKind.GRP_TRES_MINS, LimitKind.GRP_TRES_RUN_MINS):
            yield from self.at_most(place, kind, self._asked)
        yield from self._wall(place, LimitKind.GRP_WALL)
        if place.own:
            yield from self._of_the_job(place)
            if not self.has_set(
                LimitKind.MAX_SUBMIT_JOBS_PER_ACCOUNT, LimitKind.MAX_SUBMIT_JOBS_PER_USER
            ):
                yield from self._submitted(place, LimitKind.MAX_SUBMIT_JOBS, place.used)
            yield from self.at_most(place, LimitKind.MAX_TRES_MINS, self._asked)
            yield from self._wall(place, LimitKind.MAX_WALL)

    def _of_the_job(self, place: LimitOwner) -> Iterator[LimitTest]:
        if self._strict:
            yield from self.at_most(place, LimitKind.MAX_TRES, self.job.counts)
            yield from self.at_most(place, LimitKind.MAX_TRES_PER_NODE, self.on_each_node())

    def _submitted(
        self, place: LimitOwner, kind: LimitKind, used: LimitUsage
    ) -> Iterator[LimitTest]:
        limit = self.limit(place, place.limits.jobs, kind)
        if limit is not None and used.submitted + self._tasks > limit:
            yield place.test(kind, limit, requested=self._tasks, running=used.submitted)

    def _wall(self, place: LimitOwner, kind: LimitKind) -> Iterator[LimitTest]:
        limit = self.limit(place, place.limits.wall, kind)
        if limit is not None and self._minutes > limit:
            yield place.test(kind, limit, requested=self._minutes)


REASON = "TimeLimit"
"""Reason of every job that a limit ends. Its state is TIMEOUT."""


def ending_limit(job: LimitedJob, run_minutes: int, enforced: Enforced) -> LimitTest | None:
    """Return the limit that ends a running job, or None.

    The minutes or wall time of a group are used up, or the job has taken more than its own minutes.
    Limits of root end nothing, though they hold jobs.

    Args:
        job: the running job with its allocated resources.
        run_minutes: minutes that it ran up to now.
        enforced: limits end jobs only if they are enforced without `safe`.
    """
    if not enforced.limits or enforced.safe:
        return None
    return next(_Ending(job, enforced).tests(run_minutes), None)


class _Ending(LimitChain):
    def tests(self, run_minutes: int) -> Iterator[LimitTest]:
        own = {name: run_minutes * count + 1 for name, count in self.job.counts.items() if count}
        for place, _ in self.qoses():
            yield from self._used_up(place, own)
        below_root = max(len(self.job.chain) - 1, 1)
        for place in islice(self.associations(), below_root):
            yield from self._used_up(place, own)

    def _used_up(self, place: LimitOwner, own: Counts) -> Iterator[LimitTest]:
        minutes, wall = place.used.minutes(), place.used.wall_minutes()
        for name, limit in self.limits(place, LimitKind.GRP_TRES_MINS, always=True):
            if name in own and (used := minutes.get(name, 0)) >= limit:
                yield place.test(
                    LimitKind.GRP_TRES_MINS, limit, requested=own[name], tres=name, used=used
                )
        group_wall = self.limit(place, place.limits.wall, LimitKind.GRP_WALL)
        if group_wall is not None and wall >= group_wall:
            yield place.test(LimitKind.GRP_WALL, group_wall, requested=0, used=wall)
        if place.own:
            for name, limit in self.limits(place, LimitKind.MAX_TRES_MINS, always=True):
                if (amount := own.get(name, 0)) > limit:
                    yield place.test(
                        LimitKind.MAX_TRES_MINS, limit, requested=amount, tres=name, used=amount
                    )
