"""What a run costs by accounting's figures: computed from its TRES, apart from what slurmctld told when it started."""

from __future__ import annotations

from fairbank.bank.charge import cost
from fairbank.cluster.partition import Cluster
from fairbank.slurm.answers.values import Job
from fairbank.values.tres import billing, parse_counts
from fairbank.values.trouble import Unknown

SLACK_SECONDS, SLACK_MINUTES = 1, 1
"""By how much a charge may lie beside accounting's figures: slurmctld and slurmdbd each cut their times to seconds, and slurmctld's
billing is a double, where this is exact."""


def price(job: Job, cluster: Cluster, seconds: int) -> int | None:
    """SU-minutes of so many seconds of the job; None when the bank does not price its partition."""
    try:
        partition = cluster.partition(job.partition)
    except Unknown:
        return None
    units = billing(parse_counts(job.tres) if job.tres else {}, partition.weights, partition.adding)
    return cost(units, cluster.qos_factor(job.qos), seconds)


def agrees(charged: int, job: Job, cluster: Cluster) -> bool:
    """Whether a charge is what the job cost, to the minute."""
    least, most = (price(job, cluster, max(0, job.elapsed + slack)) for slack in (-SLACK_SECONDS, SLACK_SECONDS))
    if least is None or most is None:
        return True  # nobody can say
    return least - SLACK_MINUTES <= charged <= most + SLACK_MINUTES
