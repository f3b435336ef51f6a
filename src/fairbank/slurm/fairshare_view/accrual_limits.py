"""Limits on how many jobs age at once, as they count for pending jobs, with those that do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import parse_array
from fairbank.core.units import counted
from fairbank.priority.associations import AssociationKey, account_chain, own_association
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.multifactor.accrual import (
    NOT_YET,
    AccrualJob,
    AgeLimit,
    JobLimits,
    age_scope,
    ageing_tasks,
)
from fairbank.report.fair_share import association_name
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationFactors, QosFactors

Associations = Mapping[AssociationKey, AssociationFactors]


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
    records = {(row.account, row.user, row.partition): row for row in associations}
    queue = [
        AccrualJob(
            age_scope(
                job.user,
                job.account,
                _qos(job, qos),
                [(key, _limits(records[key])) for key in _chain(job, records)],
                first_of_qos=first_of_qos,
            ),
            _tasks(job),
            accrued_at=job.accrued or NOT_YET,
        )
        for job in jobs
    ]
    used = ageing_tasks(queue)
    return {
        job.job_id: [_shown(limit, used[limit.owner], job, records) for limit in entry.scope.limits]
        for job, entry in zip(jobs, queue, strict=True)
    }


def owner_name(record: AssociationFactors) -> str:
    """Return an association or account as sentences name it."""
    name = association_name(record.account, record.user, record.partition)
    return f"{'association' if record.user else 'account'} {name}"


def _shown(limit: AgeLimit, used: int, job: PendingFactors, records: Associations) -> AccrualLimit:
    setting, (kind, *names) = limit.kind, limit.owner
    if kind == "association":
        account, user, partition = names
        owner = owner_name(records[account, user, partition])
        return AccrualLimit(setting.value, owner, limit.most, used)
    return AccrualLimit(
        setting.value,
        f"QOS {names[0]}",
        limit.most,
        used,
        account=job.account if setting is LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT else None,
        user=job.user if setting is LimitKind.MAX_JOBS_ACCRUE_PER_USER else None,
    )


def _qos(job: PendingFactors, qos: Sequence[QosFactors]) -> tuple[str, JobLimits]:
    """Return the QOS whose limits slurmctld takes for age: that of the highest priority."""
    known = (row for row in qos if row.name in job.qos)
    best = max(known, key=lambda row: row.priority, default=None)
    if best is None:
        return "", {}
    return best.name, _given(
        {
            LimitKind.GRP_JOBS_ACCRUE: best.group,
            LimitKind.MAX_JOBS_ACCRUE_PER_ACCOUNT: best.per_account,
            LimitKind.MAX_JOBS_ACCRUE_PER_USER: best.per_user,
        }
    )


def _limits(row: AssociationFactors) -> JobLimits:
    """Return the limits of an association. MaxJobsAccrue of an account is handed to its users."""
    of_user = row.each if row.user else None
    return _given({LimitKind.GRP_JOBS_ACCRUE: row.group, LimitKind.MAX_JOBS_ACCRUE: of_user})


def _given(limits: Mapping[LimitKind, int | None]) -> JobLimits:
    return {kind: most for kind, most in limits.items() if most is not None}


def _chain(job: PendingFactors, records: Associations) -> Iterator[AssociationKey]:
    """Yield the association that pays, if it is known, and its account with those above it."""
    own = own_association(records, job.account, job.user, job.partitions[0])
    if own is not None and own.user:
        yield own.account, own.user, own.partition
    for row in account_chain(records, job.account):
        yield row.account, "", ""


def _tasks(job: PendingFactors) -> int:
    """Return the number of tasks, 1 for a single job."""
    try:
        return len(parse_array(job.tasks, field="ArrayTaskId").numbers) if job.tasks else 1
    except InvalidInput:  # a list that slurmctld cut off
        return 1
