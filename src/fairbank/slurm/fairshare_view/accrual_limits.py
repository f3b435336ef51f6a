"""Limits on how many jobs age at once, as they count for pending jobs, with those that do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import parse_array
from fairbank.priority.associations import account_chain, own_association
from fairbank.priority.multifactor.accrual import (
    NONE,
    NOT_YET,
    AccrualLimits,
    AccrualQueue,
    Integers,
    LimitInUse,
    limits_in_use,
)
from fairbank.report.cells import counted
from fairbank.report.fair_share import association_name
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationFactors, QosFactors

NO_ASSOCIATION = AssociationFactors("", "", "", "", 0, None, None)
QOS_SETTINGS = ("GrpJobsAccrue", "MaxJobsAccruePerAccount", "MaxJobsAccruePerUser")


class AccrualLimit(NamedTuple):
    """Limit on how many jobs age at once, and the number of jobs that do. It counts the jobs of one
    `user` or `account` alone, if it names one.
    """

    setting: str
    owner: str
    most: int
    used: int
    account: str | None = None
    user: str | None = None

    def text(self) -> str:
        """Return a sentence with the number of jobs that age."""
        of = " of a user" if self.user else " of an account" if self.account else ""
        if not self.most:
            return f"{self.owner} lets no jobs{of} age ({self.setting}=0)"
        whose = f" of {self.user or self.account}" if of else ""
        return (
            f"{self.owner} lets {counted(self.most, 'job')}{of} age at once ({self.setting}), and"
            f" {self.used:,}{whose} {'does' if self.used == 1 else 'do'}"
        )

    def facts(self) -> Mapping[str, object]:
        """Return the limit for programs."""
        return {
            "setting": self.setting,
            "owner": self.owner,
            "account": self.account,
            "user": self.user,
            "maximum": self.most,
            "jobs": self.used,
        }


def accrual_limits(
    jobs: Sequence[PendingFactors],
    qos: Sequence[QosFactors],
    associations: Sequence[AssociationFactors],
    *,
    first_of_qos: bool,
) -> Mapping[int, Sequence[AccrualLimit]]:
    """Return the limits that count for the age of each job, by its number.

    Args:
        jobs: all pending jobs: those that age take the places of others.
        qos: all QOS.
        associations: all associations.
        first_of_qos: only the first limit of a QOS counts, as in Slurm 22.05.
    """
    # The last row is that of jobs without an association: NONE is its index.
    owners = [*associations, NO_ASSOCIATION]
    rows = {(row.account, row.user, row.partition): at for at, row in enumerate(associations)}
    best = [_highest(job, qos) for job in jobs]
    queue = AccrualQueue(
        user=_numbered(job.user for job in jobs),
        account=_numbered(job.account for job in jobs),
        association=_column(_payer(job, rows) for job in jobs),
        qos=_column(NONE if at is None else at for at in best),
        submitted_at=_column(job.submitted for job in jobs),
        eligible_at=_column(job.submitted for job in jobs),
        accrued_at=_column(job.accrued or NOT_YET for job in jobs),
        ready=np.ones(len(jobs), dtype=np.bool_),
        tasks=_column(_tasks(job) for job in jobs),
    )
    limits = AccrualLimits(
        parent=_column(_parents(owners, rows)),
        group=_limits(row.group for row in owners),
        # That of an account is handed down to its users.
        each=_limits(row.each if row.user else None for row in owners),
        qos_group=_limits(row.group for row in qos),
        qos_per_account=_limits(row.per_account for row in qos),
        qos_per_user=_limits(row.per_user for row in qos),
    )
    in_use = limits_in_use(queue, limits, first_of_qos=first_of_qos)
    return {
        job.job_id: [
            *([] if at is None else _of_qos(job, qos[at].name, place, in_use)),
            *_of_association(owners, place, in_use[-1]),
        ]
        for place, (job, at) in enumerate(zip(jobs, best, strict=True))
    }


def owner_name(record: AssociationFactors) -> str:
    """Return an association or account as sentences name it."""
    name = association_name(record.account, record.user, record.partition)
    return f"{'association' if record.user else 'account'} {name}"


def _of_qos(
    job: PendingFactors, name: str, place: int, in_use: Sequence[LimitInUse]
) -> Iterator[AccrualLimit]:
    whose: Sequence[dict[str, str]] = ({}, {"account": job.account}, {"user": job.user})
    for setting, names, limit in zip(QOS_SETTINGS, whose, in_use[:-1], strict=True):
        if (most := int(limit.limit[place])) != NONE:
            yield AccrualLimit(setting, f"QOS {name}", most, int(limit.used[place]), **names)


def _of_association(
    owners: Sequence[AssociationFactors], place: int, limit: LimitInUse
) -> Iterator[AccrualLimit]:
    if (most := int(limit.limit[place])) != NONE:
        owner = owners[limit.number[place]]
        setting = "MaxJobsAccrue" if owner.group is None else "GrpJobsAccrue"
        yield AccrualLimit(setting, owner_name(owner), most, int(limit.used[place]))


def _highest(job: PendingFactors, qos: Sequence[QosFactors]) -> int | None:
    """Return the row of the QOS whose limits slurmctld takes for age: of the highest priority."""
    known = [at for at, row in enumerate(qos) if row.name in job.qos]
    return max(known, key=lambda at: qos[at].priority, default=None)


def _payer(job: PendingFactors, rows: Mapping[tuple[str, str, str], int]) -> int:
    """Return the row of the association that pays, else that of its account."""
    row = own_association(rows, job.account, job.user, job.partitions[0])
    return rows.get((job.account, "", ""), NONE) if row is None else row


def _parents(
    owners: Sequence[AssociationFactors], rows: Mapping[tuple[str, str, str], int]
) -> Iterator[int]:
    """Yield the row above each. Accounts that are above themselves have none."""
    records = {key: owners[at] for key, at in rows.items()}
    for owner in owners:
        chain = [*account_chain(records, owner.account)]
        if owner.user:
            above = chain[:1]
        else:
            above = [] if not chain or (chain[-1].parent, "", "") in rows else chain[1:2]
        yield rows[above[0].account, "", ""] if above else NONE


def _column(numbers: Iterable[int]) -> Integers:
    return np.array([*numbers], dtype=np.int64)


def _limits(limits: Iterable[int | None]) -> Integers:
    return _column(NONE if limit is None else limit for limit in limits)


def _numbered(names: Iterable[str]) -> Integers:
    """Return a number for each name, the same for the same."""
    numbers: dict[str, int] = {}
    return _column(numbers.setdefault(name, len(numbers)) for name in names)


def _tasks(job: PendingFactors) -> int:
    """Return the number of tasks, 1 for a single job."""
    try:
        return len(parse_array(job.tasks, field="ArrayTaskId").numbers) if job.tasks else 1
    except InvalidInput:  # a list that slurmctld cut off
        return 1
