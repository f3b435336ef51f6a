"""Changes of a job that the site's submission policy, its associations and the bank allow:
`fairbank why` advises no others (docs/decisions/0042).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.multifactor.combination import qos_factor
from fairbank.priority.multifactor.pending_jobs import scale
from fairbank.priority.settings import PrioritySettings
from fairbank.scheduling.explain.job_changes import AllowedChanges
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.explain.admission_rules import AdmissionRules, read_admission_rules
from fairbank.slurm.explain.job_credit import QuoteRequest, quotes
from fairbank.slurm.output import require_regular, show_command
from fairbank.slurm.parsers import sacctmgr
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.parsers.limits import QosRecord
from fairbank.slurm.parsers.values import AssociationQos
from fairbank.slurm.policy_file import POLICY_FILE, POLICY_SIZE_MAX
from fairbank.slurm.slurm_conf import conf_path

RECORDED_POLICY_FILE = "policy"
"""Submission policy in a directory of earlier output."""

QOS_FILE = "association-qos"
"""Name of the file in which the QOS of associations are recorded."""


def qos_command(cluster: str | None, user: str) -> tuple[str, ...]:
    """Return the command that prints the QOS of a user's associations."""
    of_cluster = () if cluster is None else (f"cluster={cluster}",)
    return show_command(sacctmgr.ASSOCIATION_QOS, *of_cluster, f"user={user}")


def read_policy(config: Mapping[str, str], directory: str | None) -> AdmissionRules | None:
    """Return what the site's submission policy admits; None without a policy, as without its
    plug-ins. Raises InvalidInput for one that cannot be read.
    """
    name = RECORDED_POLICY_FILE if directory else POLICY_FILE
    path = (Path(directory) if directory else conf_path(config).parent) / name
    try:
        if directory:
            require_regular(path)
        with path.open("rb") as file:
            return read_admission_rules(file.read(POLICY_SIZE_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(
            f"{path}: {error.strerror}", field="policy", remedy="let all users read it"
        ) from None


class SiteChanges(AllowedChanges):
    """Changes of one job that the site allows.

    Args:
        slurm_job: the job as slurmctld has it.
        cluster: its cluster.
        now: time in seconds since 1970.
        rules: partitions, by name.
        policy: submission policy; None: there is none.
        quote: asks the bank for the price of a job; None: do not ask.
        qos_priorities: priority that the job would have with each other QOS that its associations
            allow.
        qos_flags: flags of each QOS.
        thresholds: UsageThreshold of each QOS that enforces it.
        notes: gets a line if the bank stops answering.
    """

    def __init__(
        self,
        slurm_job: SlurmJob,
        cluster: str | None,
        now: int,
        *,
        rules: Mapping[str, PartitionRules],
        policy: AdmissionRules | None,
        quote: QuoteRequest | None,
        qos_priorities: Mapping[str, int],
        qos_flags: Mapping[str, frozenset[str]],
        thresholds: Mapping[str, float],
        notes: list[str],
    ) -> None:
        self._slurm_job, self._cluster, self._now = slurm_job, cluster, now
        self._policy = policy if policy is None or policy.has_rules_for(slurm_job.uid) else None
        self._rules, self._quote = rules, quote
        self._qos_priorities, self._qos_flags = qos_priorities, qos_flags
        self._thresholds = thresholds
        self._notes = notes
        self._is_price_known = True

    def partitions(self, job: PendingJob, name: str) -> tuple[str, ...] | None:
        if self._policy is None:
            return super().partitions(job, name)
        return self._policy.with_candidate(job.account, job.partitions, name)

    def with_other_qos(self, job: PendingJob) -> Iterator[PendingJob]:
        """Yield the job with each other QOS that the site lets it have."""
        if self._policy is None or self._policy.is_qos_free(job.account):
            for name, priority in self._qos_priorities.items():
                if name != job.qos:
                    yield msgspec.structs.replace(
                        job,
                        qos=name,
                        qos_flags=self._qos_flags.get(name, frozenset()),
                        least_fair_share=self._thresholds.get(name),
                        priority=priority,
                        priorities=(),
                    )

    def is_accepted(self, job: PendingJob) -> bool:
        """Return whether the policy and the bank would accept the changed job."""
        if self._policy is not None and not self._policy.is_price_admitted(job, self._now):
            return False
        if self._quote is None or not self._is_price_known:
            return self._is_price_known
        try:
            answers = quotes(job, self._slurm_job, self._cluster, self._rules, self._quote)
            return all(credit.is_enough for credit in answers)
        except FairbankError as error:
            # The bank refuses jobs in a partition that it does not know.
            if error.field != "partition":
                self._is_price_known = False
                self._notes.append(f"no further change is suggested: {error.message}")
            return False


def qos_priorities(
    job: PendingJob,
    rows: Iterable[AssociationQos],
    all_qos: Iterable[QosRecord],
    settings: PrioritySettings,
) -> dict[str, int]:
    """Return the priority of the job with each QOS that its association allows. An association for
    a partition replaces that for all.

    Args:
        rows: QOS of associations.
        all_qos: all QOS, with their priorities.
    """
    own = {
        row.partition: row.qos for row in rows if (row.account, row.user) == (job.account, job.user)
    }
    allowed = [frozenset(own.get(name, own.get("", ()))) for name in job.partitions]
    common = frozenset.intersection(*allowed)
    priorities = {qos.name: qos.priority for qos in all_qos}
    points = [0.0] * (len(priorities) + 1)  # the last is for no QOS
    if settings.by_factors:
        factors = qos_factor(
            scale(nodes=0, cpus=0, qos_priorities=[*priorities.values()]), settings.factors
        )
        points = (factors * settings.factors.weights.qos).tolist()
    by_name = dict(zip(priorities, points, strict=False))
    base = job.priority - by_name.get(job.qos, points[-1])
    return {
        name: min(max(1, round(base + by_name[name])), U32_MAX)
        for name in priorities
        if name in common
    }
