"""Notes on the factors of a pending job: why it has no age, usage that never decays, and whose
priorities its association and QOS have (slurm-rules.md, "Priority factors").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fairbank.core.time import iso, show_duration
from fairbank.priority.associations import own_association
from fairbank.priority.fairshare.decay import Reset
from fairbank.priority.settings import FairShare, Flag, MultifactorSettings
from fairbank.report.priorities import FactorNote
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.slurm.fairshare_view.accrual_limits import accrual_limits, owner_name
from fairbank.slurm.parsers.job_lines import PendingFactors
from fairbank.slurm.parsers.values import AssociationFactors, QosFactors

AGE, ASSOCIATION, FAIR_SHARE, QOS = "age", "association", "fair_share", "qos"
"""Fields of factors (`report.slurm.sprio.FACTORS`)."""
FIRST_PASS_SECONDS = 60
"""Time after a submission up to which nothing but the scheduler's pass delayed the age."""


class FactorInputs(NamedTuple):
    """Output of Slurm from which factors are explained. `limits`: slurmctld enforces limits.
    `first_of_qos`: of those of a QOS on the age only the first counts (`accrual_limits`).
    """

    settings: MultifactorSettings
    fair_share: FairShare
    limits: bool
    jobs: Sequence[PendingFactors]
    qos: Sequence[QosFactors]
    associations: Sequence[AssociationFactors]
    first_of_qos: bool = False


class FactorNotes:
    """Notes on the factors of pending jobs.

    Invariant: `_limits` has the limits on the age for each job, in the order of the jobs.
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
        self._limits = (
            accrual_limits(
                inputs.jobs, inputs.qos, inputs.associations, first_of_qos=inputs.first_of_qos
            )
            if inputs.limits and inputs.settings.accounted
            else {}
        )

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
        limits = self._limits.get(job.job_id, ())
        texts = "; ".join(limit.text() for limit in limits)
        text = f"begins with the scheduler's next pass{f' ({texts})' if texts else ''}"
        for limit in limits:
            if limit.used >= limit.most:
                begins = "; it begins when one of these leaves the queue" if limit.most else ""
                text = f"does not age: {limit.text()}{begins}"
                break
        return _age_note(text, limits=[limit.facts() for limit in limits])

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
            own.priority, owner_name(own), best.priority, owner_name(best), Flag.NO_NORMAL_ASSOC
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
