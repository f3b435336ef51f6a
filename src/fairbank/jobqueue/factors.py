"""Factors of pending jobs on nodes: what each job requests, beside the totals of its cluster
(slurm-rules.md, "Priority factors").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.slurm_numbers import U32_MAX
from fairbank.priority.associations import AssociationKey, own_association
from fairbank.priority.multifactor.pending_jobs import (
    NO_QOS,
    FactorScale,
    PendingColumns,
    pending,
    scale,
)


class FactorJob(NamedTuple):
    """Pending job in one partition and with one QOS, as its factors depend on it.

    `accrued_at`: time since when its age accrues, 0 if it does not yet. `nodes` are the fewest,
    `cpus` those of tested nodes, else the requested ones. `limit_minutes` 0: the partition's limit.
    """

    account: str
    user: str
    partition: str
    qos: str
    accrued_at: int
    nodes: int
    cpus: int
    limit_minutes: int
    nice: int
    site: float
    tres: Mapping[str, float]


class FactorPartition(NamedTuple):
    """Partition with PriorityJobFactor, MaxTime (0: unlimited) and the TRES of its nodes."""

    factor: int
    max_minutes: int
    tres: Mapping[str, float]


class FactorCluster(NamedTuple):
    """Cluster by whose totals factors are divided. `tres` are in the order of Slurm's ids. `qos`
    and `associations` have priorities.
    """

    nodes: int
    cpus: int
    tres: Sequence[str]
    partitions: Mapping[str, FactorPartition]
    qos: Mapping[str, int]
    associations: Mapping[AssociationKey, int]

    def scale(self) -> FactorScale:
        """Return the scale of the priority factors."""
        partitions = self.partitions.values()
        return scale(
            nodes=self.nodes,
            cpus=self.cpus,
            partition_factors=[partition.factor for partition in partitions],
            qos_priorities=[*self.qos.values()],
            association_max=max(self.associations.values(), default=0),
            totals={
                name: [partition.tres.get(name, 0.0) for partition in partitions]
                for name in self.tres
            },
        )

    def columns(
        self,
        jobs: Sequence[FactorJob],
        factor_scale: FactorScale,
        fair_shares: Mapping[AssociationKey, float],
    ) -> PendingColumns:
        """Return the jobs as columns. Raises InvalidInput for a value that Slurm could not hold.

        Args:
            jobs: pending jobs in partitions of the cluster.
            factor_scale: scale of the cluster.
            fair_shares: fair-share factors by association.
        """
        places = {name: at for at, name in enumerate(self.partitions)}
        qos_places = {name: at for at, name in enumerate(self.qos)}

        def of_payer(values: Mapping[AssociationKey, float]) -> list[float]:
            return [
                own_association(values, job.account, job.user, job.partition) or 0 for job in jobs
            ]

        return pending(
            factor_scale,
            len(jobs),
            accrued_at=[job.accrued_at for job in jobs],
            association=of_payer(self.associations),
            fairshare=of_payer(fair_shares),
            nodes=[job.nodes for job in jobs],
            cpus=[job.cpus for job in jobs],
            limit_minutes=[
                job.limit_minutes or self.partitions[job.partition].max_minutes or U32_MAX
                for job in jobs
            ],
            nice=[job.nice for job in jobs],
            site=[job.site for job in jobs],
            partition=[places[job.partition] for job in jobs],
            qos=[qos_places.get(job.qos, NO_QOS) for job in jobs],
            tres={name: [job.tres.get(name, 0.0) for job in jobs] for name in self.tres},
        )
