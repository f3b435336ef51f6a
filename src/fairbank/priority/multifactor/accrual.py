"""Limits on the number of jobs of a user, account or QOS whose age counts (slurm-rules.md,
"Priority factors").

Without them all of a thousand jobs of a user would age while they wait for each other (RCAC,
"Age").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.priority.associations import AssociationKey
from fairbank.priority.limits.reasons import LimitKind

NOT_YET = 0
"""Time of a job that does not age."""

AgeOwner = tuple[str, ...]
"""`qos` and its name, perhaps with an account or a user; or `association` and its key."""
JobLimits = Mapping[LimitKind, int]
"""Limits of a QOS or an association on numbers of jobs."""


class AgeLimit(NamedTuple):
    """Limit on how many jobs of an owner age at once."""

    kind: LimitKind
    owner: AgeOwner
    most: int


class AgeScope(NamedTuple):
    """Owners that count a job if it ages, and the limits that hold for it."""

    owners: tuple[AgeOwner, ...]
    limits: tuple[AgeLimit, ...]


class AccrualJob(NamedTuple):
    """Pending job in the order of its queue.

    `tasks` are those that are still to start, 1 for a job that is no array. `eligible_at`: begin
    time, 0 if it has none yet. `accrued_at`: time since when it ages. `is_ready`: neither held nor
    waiting for another job.
    """

    scope: AgeScope
    tasks: int
    eligible_at: int = 0
    accrued_at: int = NOT_YET
    is_ready: bool = True


class AgedJob(NamedTuple):
    """Time since when a job begins to age (NOT_YET: it does not), and how many of its tasks: fewer
    than it has become jobs of their own.
    """

    at: int = NOT_YET
    tasks: int = 0


def age_scope(
    user: str,
    account: str,
    qos: tuple[str, JobLimits],
    chain: Sequence[tuple[AssociationKey, JobLimits]],
    *,
    first_of_qos: bool = False,
) -> AgeScope:
    """Return who counts a job, and which limits hold: those of its QOS, else the first one on the
    way from the association to root.

    Args:
        user: user of the job.
        account: its account.
        qos: name and limits of its QOS.
        chain: the association with its own and inherited limits, and the accounts above it.
        first_of_qos: of a QOS only the first limit that is set holds, of its group, an account and
            a user in this order, as in Slurm 22.05. Otherwise all hold.
    """
    name, of_qos = qos
    owners: dict[LimitKind, AgeOwner] = {
        LimitKind.GRP_JOBS_ACCRUE: ("qos", name),
        LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT: ("qos", name, "account", account),
        LimitKind.MAX_JOBS_ACCRUE_PER_USER: ("qos", name, "user", user),
    }
    limits = [
        AgeLimit(kind, owner, of_qos[kind]) for kind, owner in owners.items() if kind in of_qos
    ]
    limits = limits[:1] if first_of_qos else limits
    return AgeScope(
        (*owners.values(), *(("association", *key) for key, _ in chain)),
        tuple(limits or [*_on_the_way_up(chain)][:1]),
    )


def _on_the_way_up(chain: Sequence[tuple[AssociationKey, JobLimits]]) -> Iterator[AgeLimit]:
    """Yield the limits of an association, its group limit first, and of the groups above it."""
    for level, (key, limits) in enumerate(chain):
        kinds = (LimitKind.GRP_JOBS_ACCRUE, LimitKind.MAX_JOBS_ACCRUE)
        for kind in kinds if level == 0 else kinds[:1]:
            if kind in limits:
                yield AgeLimit(kind, ("association", *key), limits[kind])


def ageing_tasks(jobs: Iterable[AccrualJob]) -> Counter[AgeOwner]:
    """Return how many tasks of each owner age."""
    counts = Counter[AgeOwner]()
    for job in jobs:
        if job.accrued_at != NOT_YET:
            for owner in job.scope.owners:
                counts[owner] += job.tasks
    return counts


def accrue(jobs: Sequence[AccrualJob], now: int) -> Iterator[AgedJob]:
    """Yield for each job of a queue whether it begins to age in this pass.

    A job without a limit ages since it was eligible, an array as a whole. Under a limit it ages
    from now on, if a place is free: each job that ages already takes one, until it leaves the
    queue.
    """
    taken = ageing_tasks(jobs)
    for job in jobs:
        owners, limits = job.scope
        if job.accrued_at != NOT_YET or not job.is_ready or not 0 < job.eligible_at <= now:
            yield AgedJob()
        elif not limits:
            yield AgedJob(job.eligible_at, job.tasks)
        else:
            tasks = min(job.tasks, *(limit.most - taken[limit.owner] for limit in limits))
            if tasks > 0:
                for owner in owners:
                    taken[owner] += tasks
            yield AgedJob(now, tasks) if tasks > 0 else AgedJob()
