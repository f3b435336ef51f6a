"""Notes on the factors of a pending job: why it has no age, usage that never decays, and whose
priorities its association and QOS have (slurm-rules.md, "Priority factors").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import parse_array
from fairbank.core.time import iso, show_duration
from fairbank.priority.associations import account_chain, own_association
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.settings import FairShare, Flag, MultifactorSettings
from fairbank.report.cells import counted
from fairbank.report.fair_share import association_name
from fairbank.report.priorities import FactorNote
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationFactors, QosFactors

AGE, ASSOCIATION, FAIR_SHARE, QOS = "age", "association", "fair_share", "qos"
"""Fields of factors (`report.slurm.sprio.FACTORS`)."""
FIRST_PASS_SECONDS = 60
"""Time after a submission up to which nothing but the scheduler's pass delayed the age."""


class FactorInputs(NamedTuple):
    """Output of Slurm from which factors are explained. `limits`: slurmctld enforces limits."""

    settings: MultifactorSettings
    fair_share: FairShare
    limits: bool
    jobs: Sequence[PendingFactors]
    qos: Sequence[QosFactors]
    associations: Sequence[AssociationFactors]


JobGroup = tuple[str, ...]
"""Jobs that a limit counts together, such as those of a user in a QOS."""


class AccrualLimit(NamedTuple):
    """Limit on how many jobs of a group age at once; `most` None: no limit. It counts the jobs of
    one `user` or `account` alone, if it names one.
    """

    setting: str
    owner: str
    most: int | None
    group: JobGroup
    account: str | None = None
    user: str | None = None

    def text(self, used: int) -> str:
        """Return a sentence with the number of jobs of the group that age."""
        of = " of a user" if self.user else " of an account" if self.account else ""
        if not self.most:
            return f"{self.owner} lets no jobs{of} age ({self.setting}=0)"
        whose = f" of {self.user or self.account}" if of else ""
        return (
            f"{self.owner} lets {counted(self.most, 'job')}{of} age at once ({self.setting}), and"
            f" {used:,}{whose} {'does' if used == 1 else 'do'}"
        )

    def facts(self, used: int) -> Mapping[str, object]:
        """Return the limit for programs, with the number of jobs of the group that age."""
        return {
            "setting": self.setting,
            "owner": self.owner,
            "account": self.account,
            "user": self.user,
            "maximum": self.most,
            "jobs": used,
        }


class FactorNotes:
    """Notes on the factors of pending jobs.

    Invariant: `_ageing` has the number of jobs that age, and of tasks of arrays, in each group.
    """

    def __init__(self, inputs: FactorInputs) -> None:
        self._inputs = inputs
        self._jobs = {job.job_id: job for job in inputs.jobs}
        self._quality = {qos.name: qos for qos in inputs.qos}
        self._best_qos = max(inputs.qos, key=lambda qos: qos.priority, default=None)
        self._associations = {
            (association.account, association.user, association.partition): association
            for association in inputs.associations
        }
        self._ageing = Counter[JobGroup]()
        for job in inputs.jobs:
            if job.accrued is not None:
                tasks = _tasks(job)
                for group in self._groups(job):
                    self._ageing[group] += tasks

    def of(self, row: PriorityRow, now: int, moment: Callable[[int], str]) -> dict[str, FactorNote]:
        """Return the notes on a job by factor; none if its priority is fixed.

        Args:
            row: the job in one of its partitions.
            now: time in seconds since 1970.
            moment: formats a time in a sentence.
        """
        job = self._jobs.get(row.job)
        if job is None or row.direct is not None:
            return {}
        notes = {
            AGE: self._age(job, now, moment),
            ASSOCIATION: self._association(job, row.partition_name),
            FAIR_SHARE: self._fair_share(),
            QOS: self._qos(row.qos_name or job.qos[0]),
        }
        return {name: note for name, note in notes.items() if note}

    # --- age ---

    def _age(self, job: PendingFactors, now: int, moment: Callable[[int], str]) -> FactorNote:
        settings = self._inputs.settings
        if not settings.accounted:
            return _age_note("without slurmdbd Slurm counts no age")
        if job.accrued is None:
            return self._not_ageing(job)
        since = job.submitted if Flag.ACCRUE_ALWAYS in settings.flags else job.accrued
        full = since + settings.max_age_seconds
        if now >= full:
            maximum = show_duration(settings.max_age_seconds)
            text = f"at its maximum since {moment(full)}: PriorityMaxAge is {maximum}"
            return _age_note(text, since=iso(since), full=iso(full), per_hour=0.0)
        rise = settings.counted.age * 3_600 / settings.max_age_seconds
        rises = f"+{rise:,.0f} per hour until {moment(full)}"
        if since > job.submitted + FIRST_PASS_SECONDS:
            rises = f"counts since {moment(since)}, not since the submission; {rises}"
        return _age_note(rises, since=iso(since), full=iso(full), per_hour=round(rise, 3))

    def _not_ageing(self, job: PendingFactors) -> FactorNote:
        """Return why a job has no age. It gets one when a job that has one leaves the queue."""
        limits = self._limits(job) if self._inputs.limits else []
        used = [(limit, self._ageing[limit.group]) for limit in limits]
        texts = "; ".join(limit.text(jobs) for limit, jobs in used)
        text = f"begins with the scheduler's next pass{f' ({texts})' if texts else ''}"
        for limit, jobs in used:
            if jobs >= (limit.most or 0):
                begins = "; it begins when one of these leaves the queue" if limit.most else ""
                text = f"does not age: {limit.text(jobs)}{begins}"
                break
        return _age_note(text, limits=[limit.facts(jobs) for limit, jobs in used])

    def _limits(self, job: PendingFactors) -> list[AccrualLimit]:
        """Return the limits that count for a job: those of its QOS, and only if that has none,
        those of the first one that has any on the way from its association to the root.
        """
        qos = self._highest_qos(job)
        if qos is not None:
            owner, account, user = f"QOS {qos.name}", job.account, job.user
            limits = [
                AccrualLimit("GrpJobsAccrue", owner, qos.group, ("QOS", qos.name)),
                AccrualLimit(
                    "MaxJobsAccruePerAccount",
                    owner,
                    qos.per_account,
                    ("QOS", qos.name, "account", account),
                    account=account,
                ),
                AccrualLimit(
                    "MaxJobsAccruePerUser",
                    owner,
                    qos.per_user,
                    ("QOS", qos.name, "user", user),
                    user=user,
                ),
            ]
            if limits := [limit for limit in limits if limit.most is not None]:
                return limits
        for association in self._upwards(job):
            name = (association.account, association.user, association.partition)
            owner = _owner(association)
            limits = [
                AccrualLimit("GrpJobsAccrue", owner, association.group, ("association", *name)),
                # That of an account is handed down to its users.
                AccrualLimit(
                    "MaxJobsAccrue",
                    owner,
                    association.each if association.user else None,
                    ("association", *name),
                ),
            ]
            if limits := [limit for limit in limits if limit.most is not None]:
                return limits
        return []

    def _groups(self, job: PendingFactors) -> Iterator[JobGroup]:
        """Yield the groups among whose jobs a job is counted."""
        if (qos := self._highest_qos(job)) is not None:
            yield "QOS", qos.name
            yield "QOS", qos.name, "account", job.account
            yield "QOS", qos.name, "user", job.user
        for association in self._upwards(job):
            yield "association", association.account, association.user, association.partition

    def _highest_qos(self, job: PendingFactors) -> QosFactors | None:
        """Return the QOS whose limits slurmctld takes for age: that of the highest priority."""
        there = [self._quality[name] for name in job.qos if name in self._quality]
        return max(there, key=lambda qos: qos.priority, default=None)

    def _upwards(self, job: PendingFactors) -> Iterator[AssociationFactors]:
        """Yield the association that pays, and the accounts above it up to the root."""
        own = self._payer(job, job.partitions[0])
        if own is not None:
            yield own
        yield from account_chain(self._associations, job.account)

    def _payer(self, job: PendingFactors, partition: str) -> AssociationFactors | None:
        """Return the association that pays in a partition."""
        return own_association(self._associations, job.account, job.user, partition)

    def _fair_share(self) -> FactorNote | None:
        """Return a note if usage never decays."""
        fair_share = self._inputs.fair_share
        if fair_share.half_life_seconds:
            return None
        text = (
            "usage never decays (PriorityDecayHalfLife=0):"
            f" PriorityUsageResetPeriod={fair_share.reset.value}"
            f" {'never clears' if fair_share.reset is Reset.NONE else 'clears'} it"
        )
        return FactorNote(text, {"reset": fair_share.reset.value})

    # --- priorities of associations and QOS ---

    def _association(self, job: PendingFactors, partition: str) -> FactorNote | None:
        own = self._payer(job, partition)
        best = max(
            self._inputs.associations, key=lambda association: association.priority, default=None
        )
        if own is None or best is None:
            return None
        return self._divided(
            own.priority, _owner(own), best.priority, _owner(best), Flag.NO_NORMAL_ASSOC
        )

    def _qos(self, name: str) -> FactorNote | None:
        own, best = self._quality.get(name), self._best_qos
        if own is None or best is None:
            return None
        owner, highest = f"QOS {name}", f"QOS {best.name}"
        return self._divided(own.priority, owner, best.priority, highest, Flag.NO_NORMAL_QOS)

    def _divided(self, priority: int, owner: str, highest: int, best: str, raw: Flag) -> FactorNote:
        """Return the priority of an owner, and the one it is divided by.

        Args:
            priority: that of the owner.
            owner: association or QOS of the job.
            highest: the highest priority of all.
            best: whose it is.
            raw: flag with which the priority itself is the factor.
        """
        is_raw = raw in self._inputs.settings.flags
        is_divided = not is_raw and highest != 0
        if is_raw:
            text = f"priority {priority:,} of {owner}, not divided ({raw.value})"
        elif not is_divided:
            text = f"{owner} has no priority, nor has any other"
        elif priority == highest:
            text = f"priority {priority:,} of {owner}, the highest"
        else:
            text = f"priority {priority:,} of {owner}, divided by {highest:,}, that of {best}"
        facts = {"owner": owner, "priority": priority, "divided": is_divided}
        return FactorNote(text, facts | {"highest_priority": highest, "highest_owner": best})


def _age_note(
    text: str,
    since: str | None = None,
    full: str | None = None,
    per_hour: float | None = None,
    limits: Sequence[Mapping[str, object]] = (),
) -> FactorNote:
    """Return a note on the age: since when it counts, when it is full, and how fast it rises."""
    facts = {"since": since, "full": full, "per_hour": per_hour, "limits": [*limits]}
    return FactorNote(text, facts)


def _owner(record: AssociationFactors) -> str:
    name = association_name(record.account, record.user, record.partition)
    return f"{'association' if record.user else 'account'} {name}"


def _tasks(job: PendingFactors) -> int:
    """Return the number of tasks, 1 for a single job."""
    try:
        return len(parse_array(job.tasks, field="ArrayTaskId").numbers) if job.tasks else 1
    except InvalidInput:  # a list that slurmctld cut off
        return 1
