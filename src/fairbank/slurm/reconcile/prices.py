"""Price of a run by accounting's TRES, independent of what slurmctld reported at its start."""

from __future__ import annotations

from fractions import Fraction

from fairbank.bank.pricing import cost
from fairbank.core.errors import NotFound
from fairbank.core.tres import billing, parse_counts
from fairbank.slurm.parsers.values import AccountingJob
from fairbank.slurm.reconcile.bank_records import BankCluster

SLACK_SECONDS, SLACK_MINUTES = 1, 1
"""Tolerance of a charge: slurmctld and slurmdbd each cut their times to seconds,
and slurmctld's billing is a double, while this price is exact."""

_ONE = Fraction(1)


class ClusterPrices:
    """Prices of one cluster.

    Jobs with the same partition, TRES and QOS, as most have, share a rate.
    """

    def __init__(self, cluster: BankCluster) -> None:
        self._cluster = cluster
        self._rates: dict[tuple[str, str, str | None], Fraction | None] = {}

    def price(self, job: AccountingJob, seconds: int) -> int | None:
        """Return the SU-minutes of a job for a time; None if the bank does not price its
        partition.
        """
        kind = (job.partition, job.tres, job.qos)
        if kind not in self._rates:
            self._rates[kind] = self._rate(job)
        rate = self._rates[kind]
        return None if rate is None else cost(rate, _ONE, seconds)

    def end_price(self, job: AccountingJob) -> int | None:
        """Return the SU-minutes of a job that ended: 0 in a free state, None without a price."""
        cost = self.price(job, job.elapsed)
        return 0 if cost is not None and job.state in self._cluster.free_states else cost

    def is_right_price(self, charged: int, job: AccountingJob) -> bool:
        """Return True if a charge is the job's price, within the tolerances, or if there is no
        price.
        """
        exact = self.price(job, job.elapsed)
        if exact is None or exact == charged:
            return True
        least, most = (
            self.price(job, max(0, job.elapsed + slack)) or 0
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
