"""Output of Slurm that explains a waiting job: the queue, the Unix groups of users, and the fair
share of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.core.errors import FairbankError
from fairbank.priority.associations import own_association
from fairbank.priority.fairshare.regimes import classic_factor
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.commands import TIMEOUT_SECONDS, output_of
from fairbank.slurm.output import SlurmOutput
from fairbank.slurm.parsers.config import Version
from fairbank.slurm.parsers.jobs import SlurmJob
from fairbank.slurm.queue_snapshot.answers import COMMANDS, QueueAnswers, read_answers
from fairbank.slurm.queue_snapshot.settings import usage_thresholds
from fairbank.unix_users import groups_of

OWN_FACTOR_SINCE = Version(25, 11, 0)
"""Release from which the factor of Fair Tree counts where the weighted one is 0. Before, it is the
classic formula.
"""


def read_queue(
    job_id: str, directory: str | None, timeout_seconds: float = TIMEOUT_SECONDS
) -> tuple[Mapping[str, str], QueueAnswers, Sequence[UnreadableLine]]:
    """Return the output of Slurm's commands, what it says, and lines that could not be read.

    Args:
        job_id: the job to explain, as squeue shows it; of its user the Unix groups are read.
        directory: directory with earlier output of the commands; None asks Slurm now.
        timeout_seconds: time after which a command counts as failed.
    """
    source = output_of(directory, timeout_seconds)
    source.require((), COMMANDS)
    texts = {name: source.text(name, *command) for name, command in COMMANDS.items()}
    answers, unreadable = read_answers(texts)
    groups = groups_of_users(answers, job_id) if directory is None else {}
    pending = [job for job in answers.jobs if job.is_pending]
    shares: dict[int, float] = {}
    if usage_thresholds(answers.qos):
        shares, more = fair_shares(pending, source)
        unreadable = (*unreadable, *more)
    return texts, msgspec.structs.replace(answers, groups=groups, fair_shares=shares), unreadable


def groups_of_users(snapshot: QueueAnswers, job_id: str) -> dict[str, tuple[str, ...]]:
    """Return the Unix groups, as this host knows them, of the users who wait for a partition with
    AllowGroups, and of the user of this job, which may be advised to request one.
    """
    restricted = {rules.name for rules in snapshot.partitions if rules.groups is not None}
    if not restricted:
        return {}
    number = re.split("[_+]", job_id)[0]
    users = {
        job.user
        for job in snapshot.jobs
        if job.is_pending
        and (
            restricted & {*job.partitions}
            or number in (str(job.job_id), str(job.array), str(job.het_job))
        )
    }
    groups = {user: groups_of(user) for user in users}
    return {user: names for user, names in groups.items() if names}


def fair_shares(
    jobs: Sequence[SlurmJob], source: SlurmOutput
) -> tuple[dict[int, float], Sequence[UnreadableLine]]:
    """Return what slurmctld compares with UsageThreshold, by job: the fair share of its priority
    with its weight, or if that is 0 the factor of its association (slurm-rules.md, "Partitions").
    What Slurm does not tell is left out; also return the lines that could not be read.
    """
    shares, unreadable = dict[int, float](), list[UnreadableLine]()
    with suppress(FairbankError):  # priority/basic has no factors
        weight = source.priority_settings().factors.counted.fairshare
        factors = source.factors()
        unreadable += factors.unreadable
        for line in factors.rows:
            if line.normal["f"] * weight:
                shares[line.row.job] = line.normal["f"] * weight
    if missing := [job for job in jobs if job.job_id not in shares]:
        with suppress(FairbankError):
            associations = source.shares()
            unreadable += associations.unreadable
            shares |= _factors(missing, associations.rows, source)
    return shares, unreadable


def _factors(
    jobs: Sequence[SlurmJob], shares: Sequence[ShareRow], source: SlurmOutput
) -> dict[int, float]:
    """Return the factors of the associations of jobs. Raises FairbankError."""
    associations = {(row.account, row.user, row.partition): row for row in shares}
    dampening = source.priority_settings().fair_share.dampening
    is_own = source.version >= OWN_FACTOR_SINCE
    factors = dict[int, float]()
    for job in jobs:
        row = own_association(associations, job.account, job.user, job.partitions[0])
        if row is None:
            continue
        if is_own:
            factors[job.job_id] = row.factor or 0.0
        elif row.effective is None or row.norm_shares <= 0:
            factors[job.job_id] = 0.0
        else:
            factors[job.job_id] = classic_factor(row.effective / row.norm_shares / dampening)
    return factors
