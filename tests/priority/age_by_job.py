"""Queue and age rules job by job: an oracle for the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from fairbank.priority.multifactor.accrual import NONE, NOT_YET, AccrualLimits, AccrualQueue, accrue
from fairbank.priority.settings import Flag

ROOT = "root"


class Limit(msgspec.Struct, frozen=True):
    """Limits of an association (`group` and `each`) or of a QOS (all but `each`)."""

    group: int | None = None
    each: int | None = None
    per_account: int | None = None
    per_user: int | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    account: str
    submitted_at: int
    eligible_at: int
    qos: str | None = "normal"
    ready: bool = True
    accrued_at: int = NOT_YET
    tasks: int = 1

    def chain(self) -> tuple[str, str, str]:
        return (f"{self.user}@{self.account}", self.account, ROOT)


Limits = Mapping[str, Limit]


def accrue_jobs(
    jobs: Sequence[Job],
    associations: Limits,
    qoses: Limits,
    *,
    now: int,
    flags: frozenset[Flag] = frozenset(),
    enforced: bool = True,
    first_of_qos: bool = False,
) -> list[tuple[int, int]]:
    """Return the time since when each job accrues age, and its number of tasks."""
    parents = (
        {ROOT: ""}
        | {job.account: ROOT for job in jobs}
        | {job.chain()[0]: job.account for job in jobs}
    )
    names, users, accounts = (
        list(parents),
        sorted({job.user for job in jobs}),
        sorted({job.account for job in jobs}),
    )

    def column(numbers: list[int]) -> np.typing.NDArray[np.int64]:
        return np.array(numbers, dtype=np.int64)

    def row_of_limits(
        limits: Limits, named: Sequence[str], field: str
    ) -> np.typing.NDArray[np.int64]:
        numbers = [getattr(limits.get(name, Limit()), field) for name in named]
        return column([NONE if limit is None else limit for limit in numbers])

    by_qos = sorted(qoses)
    result = accrue(
        AccrualQueue(
            user=column([users.index(job.user) for job in jobs]),
            account=column([accounts.index(job.account) for job in jobs]),
            association=column([names.index(job.chain()[0]) for job in jobs]),
            qos=column([by_qos.index(job.qos) if job.qos in by_qos else NONE for job in jobs]),
            submitted_at=column([job.submitted_at for job in jobs]),
            eligible_at=column([job.eligible_at for job in jobs]),
            accrued_at=column([job.accrued_at for job in jobs]),
            ready=np.array([job.ready for job in jobs], dtype=np.bool_),
            tasks=column([job.tasks for job in jobs]),
        ),
        AccrualLimits(
            parent=column(
                [names.index(parents[name]) if parents[name] else NONE for name in names]
            ),
            group=row_of_limits(associations, names, "group"),
            each=row_of_limits(associations, names, "each"),
            qos_group=row_of_limits(qoses, by_qos, "group"),
            qos_per_account=row_of_limits(qoses, by_qos, "per_account"),
            qos_per_user=row_of_limits(qoses, by_qos, "per_user"),
        ),
        flags=flags,
        limits_enforced=enforced,
        now=now,
        first_of_qos=first_of_qos,
    )
    return list(zip(result.at.tolist(), result.tasks.tolist(), strict=True))


class Queue:
    """Queue that changes from pass to pass."""

    def __init__(
        self,
        associations: Limits | None = None,
        qoses: Limits | None = None,
        flags: frozenset[Flag] = frozenset(),
        limits_enforced: bool = True,
    ) -> None:
        self._associations, self._qoses, self._flags, self._enforced = (
            associations or {},
            qoses or {},
            flags,
            limits_enforced,
        )
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
        accrued = accrue_jobs(
            [job for _, job in queue],
            self._associations,
            self._qoses,
            now=now,
            flags=self._flags,
            enforced=self._enforced,
        )
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


# --- the twin ---


def by_hand(
    jobs: Sequence[Job], associations: Limits, qoses: Limits, now: int, *, first_of_qos: bool
) -> list[tuple[int, int]]:
    """Compute the same for one job after the other, by docs/reference/slurm-rules.md, "Priority
    factors".
    """
    ageing: dict[object, int] = {}

    def count(job: Job, tasks: int) -> None:
        for scope in (*_of_qos(job), *job.chain()):
            ageing[scope] = ageing.get(scope, 0) + tasks

    for job in jobs:
        if job.accrued_at:
            count(job, job.tasks)
    result = []
    for job in jobs:
        at, tasks = NOT_YET, 0
        if job.ready and not job.accrued_at and 0 < job.eligible_at <= now:
            places = [
                limit - ageing.get(scope, 0)
                for scope, limit in _concerning(job, associations, qoses, first_of_qos)
            ]
            tasks = max(min([*places, job.tasks]), 0)
            at = (now if places else job.eligible_at) if tasks else NOT_YET
            count(job, tasks)
        result.append((at, tasks))
    return result


def _of_qos(job: Job) -> tuple[object, object, object]:
    return (
        ("qos", job.qos),
        ("qos", job.qos, "account", job.account),
        ("qos", job.qos, "user", job.user),
    )


def _concerning(
    job: Job, associations: Limits, qoses: Limits, first_of_qos: bool
) -> Sequence[tuple[object, int]]:
    of_qos = qoses.get(job.qos or "", Limit())
    amounts = zip(_of_qos(job), (of_qos.group, of_qos.per_account, of_qos.per_user), strict=True)
    by_qos = [(scope, limit) for scope, limit in amounts if limit is not None]
    return (by_qos[:1] if first_of_qos else by_qos) or list(_on_the_way_up(job, associations))[:1]


def _on_the_way_up(job: Job, associations: Limits) -> Iterator[tuple[object, int]]:
    for level, name in enumerate(job.chain()):
        limits = associations.get(name, Limit())
        if limits.group is not None:
            yield name, limits.group
        if level == 0 and limits.each is not None:
            yield name, limits.each
