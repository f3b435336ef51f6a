"""Prices of runs by accounting's TRES, and Slurm's billing as settings of the bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from fairbank.bank.pricing import cost
from fairbank.bank.records import BankCluster
from fairbank.cluster.accounting_job import AccountingJob
from fairbank.cluster.allocated_tres import Memory, count_only_types
from fairbank.cluster.partition import Cluster
from fairbank.core.errors import NotFound
from fairbank.core.settings_file import toml_key, toml_string
from fairbank.core.tres import BillingRule, billing, parse_counts, parse_weights
from fairbank.slurm.parsers.config import read_billing_rule
from fairbank.slurm.parsers.values import SlurmAssociation, SlurmNode, SlurmPartition, SlurmQos
from fairbank.slurm.reconcile.node_sizes import default_partition, size_settings

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
        self._rates: dict[tuple[str, str, str | None, bool], Fraction | None] = {}

    def price(self, job: AccountingJob, seconds: int) -> int | None:
        """Return the SU-minutes of a job for a time; None if the bank does not price its
        partition. Each piece of a resized job is priced by its own TRES and time.

        A job that has not started is priced with the type of GPUs that it will get.
        """
        rate = self._rate(job.partition, job.tres, job.qos, is_allocated=job.start is not None)
        if rate is None:
            return None
        rates = (
            (self._rate(job.partition, piece.tres or "", job.qos) or Fraction(0), piece.seconds)
            for piece in job.pieces
        )
        return cost(rate, _ONE, seconds, rates)

    def in_dearest_partition(self, job: AccountingJob) -> AccountingJob:
        """Return the job in the dearest partition of those that it requested."""
        jobs = [msgspec.structs.replace(job, partition=name) for name in job.partition.split(",")]
        return max(jobs, key=lambda job: self.price(job, 3_600) or 0) if len(jobs) > 1 else job

    def end_price(self, job: AccountingJob) -> int | None:
        """Return the SU-minutes of a job that ended: 0 in a free state, None without a price."""
        price = self.price(job, job.elapsed)
        return 0 if price is not None and job.state in self._cluster.free_states else price

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

    def _rate(
        self, partition: str, tres: str, qos: str | None, *, is_allocated: bool = True
    ) -> Fraction | None:
        kind = (partition, tres, qos, is_allocated)
        if kind not in self._rates:
            self._rates[kind] = self._compute_rate(*kind)
        return self._rates[kind]

    def _compute_rate(
        self, name: str, tres: str, qos: str | None, is_allocated: bool
    ) -> Fraction | None:
        try:
            partition = self._cluster.partition(name)
        except NotFound:
            return None
        counts = parse_counts(tres) if tres else {}
        if not is_allocated:
            counts |= count_only_types(counts, partition.size.gres or {})
        units = billing(counts, partition.weights, partition.billing_rule)
        return units * self._cluster.qos_factor(qos)


class SlurmMachine(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions, nodes and QOS as slurmctld has them."""

    cluster: str
    partitions: Sequence[SlurmPartition]
    nodes: Sequence[SlurmNode] = ()
    qos: Sequence[SlurmQos] = ()
    flags: str = ""
    slurm_uid: int | None = None
    """Uid of SlurmUser, as which the agent reports runs. None if Slurm does not show it."""
    default_memory: Memory | None = None
    """Memory of jobs that request none, in partitions without a default; None if unknown."""

    @property
    def billing_rule(self) -> BillingRule:
        """Rule by which PriorityFlags adds weighted TRES."""
        return read_billing_rule(self.flags)

    def resource_of(self, partition: SlurmPartition) -> str:
        """Return `gpu` if the partition's nodes have GPUs or its weights price them, else `cpu`."""
        weights = parse_weights(partition.weights) if partition.weights else {}
        is_priced = any(name.startswith("gres/gpu") for name in weights)
        return "gpu" if is_priced or self.has_gpus(partition) else "cpu"

    def has_gpus(self, partition: SlurmPartition) -> bool:
        """Return True if a node of the partition has GPUs."""
        return any(node.gpus for node in self.nodes if partition.name in node.partitions)

    @property
    def factors(self) -> Mapping[str, str]:
        """Price factor of each QOS that differs from 1."""
        return {qos.name: qos.factor for qos in self.qos if Fraction(qos.factor) != 1}


def price_settings(machine: SlurmMachine, shares: Sequence[SlurmAssociation]) -> str:
    """Return the lines for the bank's settings that price this cluster as Slurm bills it.

    Shares are listed as comments, since they stay in Slurm.
    """
    table = f"clusters.{toml_key(machine.cluster)}"
    default = default_partition(machine.partitions)
    agents = "" if machine.slurm_uid is None else str(machine.slurm_uid)
    comment = "the uids that report runs: Slurm's user" + (
        "" if agents else ", whose number is to be put here: id -u slurm"
    )
    lines = [
        f"[{table}]",
        f'adding = "{machine.billing_rule.value}"',
        f"agents = [{agents}]    # {comment}",
    ]
    if default is not None:
        about = "leave it out if jobs without --partition are refused"
        lines.append(f"default_partition = {toml_string(default)}    # {about}")
    lines.append("")
    for partition in machine.partitions:
        weights = [f"weights = {toml_string(partition.weights)}"] if partition.weights else []
        lines += [
            f"[{table}.partitions.{toml_string(partition.name)}]",
            f'resource = "{machine.resource_of(partition)}"',
            *weights,
            *size_settings(machine, partition),
            "",
        ]
    if machine.factors:
        factors = [f'{toml_string(name)} = "{factor}"' for name, factor in machine.factors.items()]
        lines += [f"[{table}.qos_factors]", *factors, ""]
    share_lines = [
        f"#   {association.account}{f'/{association.user}' if association.user else ''} "
        f" {association.shares}"
        for association in shares
        if association.shares
    ]
    if share_lines:
        lines += ["# Shares stay in Slurm, which ranks its queue by them:", *share_lines]
    return "\n".join(lines) + "\n"


def price_differences(machine: SlurmMachine, known: Cluster) -> list[str]:
    """Describe each difference between the bank's prices and Slurm's billing."""
    differences = []
    for partition in machine.partitions:
        bank_partition = known.partitions.get(partition.name)
        if bank_partition is None:
            differences.append(f"partition {partition.name}: the bank's settings do not have it")
            continue
        weights = parse_weights(partition.weights) if partition.weights else None
        if (bank_partition.weights and dict(bank_partition.weights)) != weights:
            differences.append(
                f"partition {partition.name}: Slurm's weights are {partition.weights or 'not set'};"
                " the bank's settings have others"
            )
        if bank_partition.billing_rule is not machine.billing_rule:
            differences.append(
                f"partition {partition.name}: Slurm adds TRES by {machine.billing_rule.value}, the"
                f" bank by {bank_partition.billing_rule.value}"
            )
    for qos in machine.qos:
        factor = known.qos_factor(qos.name)
        if factor != Fraction(qos.factor):
            text = f"Slurm's UsageFactor is {qos.factor}, the bank's factor {factor}"
            differences.append(f"QOS {qos.name}: {text}")
    return differences
