"""Queue whose jobs age under limits, from pass to pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.multifactor.accrual import NOT_YET, AccrualJob, AgeScope, accrue, age_scope

ROOT = "root"


class Limit(msgspec.Struct, frozen=True):
    """Limits of an association (`group` and `each`) or of a QOS (all but `each`)."""

    group: int | None = None
    each: int | None = None
    per_account: int | None = None
    per_user: int | None = None

    def by_kind(self) -> dict[LimitKind, int]:
        limits = {
            LimitKind.GRP_JOBS_ACCRUE: self.group,
            LimitKind.MAX_JOBS_ACCRUE: self.each,
            LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT: self.per_account,
            LimitKind.MAX_JOBS_ACCRUE_PER_USER: self.per_user,
        }
        return {kind: limit for kind, limit in limits.items() if limit is not None}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    account: str
    submitted_at: int
    eligible_at: int
    qos: str | None = "normal"
    ready: bool = True
    accrued_at: int = NOT_YET
    tasks: int = 1


Limits = Mapping[str, Limit]


def accrue_jobs(
    jobs: Sequence[Job],
    associations: Limits,
    qoses: Limits,
    *,
    now: int,
    first_of_qos: bool = False,
) -> list[tuple[int, int]]:
    """Return the time since when each job accrues age, and its number of tasks."""

    def scope(job: Job) -> AgeScope:
        names = (f"{job.user}@{job.account}", job.account, ROOT)
        chain = [((name, "", ""), associations.get(name, Limit()).by_kind()) for name in names]
        qos = job.qos or ""
        limits = qoses.get(qos, Limit()).by_kind()
        return age_scope(job.user, job.account, (qos, limits), chain, first_of_qos=first_of_qos)

    queue = [
        AccrualJob(scope(job), job.tasks, job.eligible_at, job.accrued_at, job.ready)
        for job in jobs
    ]
    return [(aged.at, aged.tasks) for aged in accrue(queue, now)]


class Queue:
    """Queue that changes from pass to pass."""

    def __init__(self, associations: Limits | None = None, qoses: Limits | None = None) -> None:
        self._associations, self._qoses = associations or {}, qoses or {}
        self.jobs: dict[str, Job] = {}

    def comes(
        self,
        *names: str,
        at: int = 0,
        user: str = "ada",
        account: str = "physics",
        qos: str | None = "normal",
        tasks: int = 1,
    ) -> None:
        for name in names:
            self.jobs[name] = Job(
                user=user, account=account, submitted_at=at, eligible_at=at, qos=qos, tasks=tasks
            )

    def starts(self, *names: str) -> None:
        for name in names:
            del self.jobs[name]

    def passes(self, now: int) -> None:
        queue = list(self.jobs.items())
        jobs = [job for _, job in queue]
        accrued = accrue_jobs(jobs, self._associations, self._qoses, now=now)
        for (name, job), (at, tasks) in zip(queue, accrued, strict=True):
            if at and tasks < job.tasks:
                self.jobs[f"{name} split"] = replace(job, accrued_at=at, tasks=tasks)
                self.jobs[name] = replace(job, tasks=job.tasks - tasks)
            elif at:
                self.jobs[name] = replace(job, accrued_at=at)

    def ages(self, now: int) -> dict[str, int]:
        return {
            name: now - job.accrued_at if job.accrued_at else 0 for name, job in self.jobs.items()
        }
