"""What a run costs by accounting's figures: computed from its TRES, apart from what slurmctld told when it started."""

from __future__ import annotations

from fractions import Fraction

from fairbank.bank.pricing import cost
from fairbank.core.errors import NotFound
from fairbank.core.tres import billing, parse_counts
from fairbank.slurm.compare.bank_records import BookedCluster
from fairbank.slurm.parsers.values import AccountingJob

SLACK_SECONDS, SLACK_MINUTES = 1, 1
"""By how much a charge may lie beside accounting's figures: slurmctld and slurmdbd each cut their times to seconds, and slurmctld's
billing is a double, where this is exact."""

_ONE = Fraction(1)


class ClusterPrices:
    """The prices of one cluster. Jobs alike in partition, TRES and QOS, as most are, are weighed once."""

    def __init__(self, cluster: BookedCluster) -> None:
        self._cluster = cluster
        self._rates: dict[tuple[str, str, str | None], Fraction | None] = {}

    def of(self, job: AccountingJob, seconds: int) -> int | None:
        """SU-minutes of so many seconds of the job; None when the bank does not price its partition."""
        kind = (job.partition, job.tres, job.qos)
        if kind not in self._rates:
            self._rates[kind] = self._rate(job)
        rate = self._rates[kind]
        return None if rate is None else cost(rate, _ONE, seconds)

    def of_end(self, job: AccountingJob) -> int | None:
        """SU-minutes that its end costs: nothing in a state that is free at this bank; None when the bank does not price its partition."""
        cost = self.of(job, job.elapsed)
        return 0 if cost is not None and job.state in self._cluster.free_states else cost

    def agrees(self, charged: int, job: AccountingJob) -> bool:
        """Whether a charge is what the job cost, to the minute; also where nobody can say."""
        exact = self.of(job, job.elapsed)
        if exact is None or exact == charged:
            return True
        least, most = (
            self.of(job, max(0, job.elapsed + slack)) or 0
            for slack in (-SLACK_SECONDS, SLACK_SECONDS)
        )
        return least - SLACK_MINUTES <= charged <= most + SLACK_MINUTES

    def _rate(self, job: AccountingJob) -> Fraction | None:
        try:
            partition = self._cluster.partition(job.partition)
        except NotFound:
            return None
        counts = parse_counts(job.tres) if job.tres else {}
        return billing(
            counts, partition.weights, partition.billing_rule
        ) * self._cluster.qos_factor(job.qos)
