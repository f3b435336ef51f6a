"""Rules of a policy file by which `fairbank why` judges a changed job as the plug-ins would:
partitions, QOS, and prices (docs/decisions/0042).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from fairbank.bank.rules.short_term import ShortTerm, closed_by, forced_value
from fairbank.cluster.allocated_tres import (
    Memory,
    MemoryUnit,
    NodeSize,
    allocated_tres,
    needed_nodes,
)
from fairbank.cluster.job import JobRequest
from fairbank.cluster.partition import Partition
from fairbank.cluster.resource_request import ResourceRequest
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import GPU, Gres, gres_counts
from fairbank.core.tres import BillingRule, billing
from fairbank.core.units import round_up
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.policy_file import PolicyAction, read_header

Rows = Mapping[str, Sequence[Sequence[str]]]
"""Fields of the lines of a policy file, by the first word of the line."""


class PricedPartition(NamedTuple):
    """Partition with its prices and nodes, and the minutes of jobs without a limit; 0: none."""

    partition: Partition
    default_minutes: int

    def units(self, job: PendingJob) -> Fraction:
        """Return the billing units of what the plug-ins count for the job there."""
        place = self.partition
        return billing(self.counts(job), place.weights, place.billing_rule)

    def counts(self, job: PendingJob) -> Mapping[str, Fraction]:
        """Return the TRES that the job can hold at least, as `counts` in
        plugins/fairbank/request.lua.
        """
        place, wanted = self.partition, job.wanted
        nodes = -(-wanted.least_tasks // (wanted.tasks_per_node or wanted.least_tasks))
        nodes = max(nodes, wanted.nodes)
        cpus = max(job.tres.get("cpu", wanted.cpus), nodes)
        request = JobRequest(
            cluster="",
            partition=place.name,
            counts={"cpu": Fraction(cpus), "node": Fraction(nodes)},
            limit_seconds=0,
            # As the plug-ins, which price what is requested if the size of the nodes is unknown.
            exclusive=wanted.exclusive and place.size.least_cpus is not None,
            memory=_memory(wanted),
        )
        on_node = gres_counts(Gres(GPU, *gpus) for gpus in wanted.gpus)
        nodes = needed_nodes(request, place.size)
        gpus = {name: Fraction(nodes * number) for name, number in on_node.items()}
        requests = {"--gpus-per-node": {name: Fraction(on_node[name]) for name in on_node}}
        request = replace(request, counts={**request.counts, **gpus}, node_requests=requests)
        return allocated_tres(request, place)


def _memory(wanted: ResourceRequest) -> Memory | None:
    if wanted.memory_per_cpu:
        return Memory(wanted.memory_per_cpu, MemoryUnit.CPU)
    return None if wanted.memory_per_node is None else Memory(wanted.memory_per_node)


class PolicyPrices(msgspec.Struct, frozen=True, kw_only=True):
    """Prices and credit of a policy that refuses jobs which their project cannot pay.

    `credit` is in SU-minutes, by account and resource; it counts up to the time `until`.
    """

    partitions: Mapping[str, PricedPartition]
    factors: Mapping[str, Fraction]
    qos_resources: Mapping[str, str]
    accounts: frozenset[str]
    credit: Mapping[tuple[str, str], int]
    until: int

    def is_paid(self, job: PendingJob, partition: str, now: int) -> bool:
        """Return True if the credit pays for the whole limit of the job, or is not checked; False
        for a job without a limit where partitions have no default.

        Args:
            job: the job; one of an account that the policy does not know is not checked.
            partition: the partition in which it would start; one without a price is not checked.
            now: the time in seconds since 1970. After `until` the credit is not checked.
        """
        priced = self.partitions.get(partition)
        if priced is None or job.account not in self.accounts:
            return True
        minutes = self._minutes(job)
        amount = round_up(priced.units(job) * self.factors.get(job.qos, 1) * minutes)
        resource = self.qos_resources.get(job.qos, priced.partition.resource)
        credit = self.credit.get((job.account, resource), 0)
        return minutes > 0 and (now > self.until or amount <= max(credit, 0))

    def _minutes(self, job: PendingJob) -> int:
        """Return the limit of the job, else the longest default of its partitions; 0 if one has
        none.
        """
        if job.limit is not None:
            return -(-job.limit // 60)
        partitions = [self.partitions[name] for name in job.partitions if name in self.partitions]
        defaults = [partition.default_minutes for partition in partitions]
        return max(defaults) if defaults and all(defaults) else 0


class AdmissionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions, QOS and prices that a policy admits.

    `listed_partitions` is None if it admits partitions that it does not list; `one_partition`
    refuses several; `short_terms` count as of `written`, the time of the policy, which is written
    again every few minutes. `qos` is the QOS of all jobs, `forced_qos` that of all jobs of an
    account. `prices` is None if it refuses no job for its price. Jobs of the users `exempt` are not
    judged.
    """

    listed_partitions: frozenset[str] | None
    one_partition: bool
    short_terms: Sequence[ShortTerm] = ()
    written: int = 0
    qos: str | None = None
    forced_qos: Mapping[str, str] = {}
    prices: PolicyPrices | None = None
    exempt: frozenset[int] = frozenset()

    def has_rules_for(self, uid: int | None) -> bool:
        """Return True if the rules are for the jobs of this user."""
        return uid != 0 and uid not in self.exempt

    def with_candidate(
        self, account: str, partitions: Sequence[str], candidate: str
    ) -> tuple[str, ...] | None:
        """Return the --partition with which a job may also, or only, go to another partition; None
        if the policy refuses that.

        Args:
            partitions: the partitions that it names now.
            candidate: the other partition.
        """
        forced = forced_value(self.short_terms, "partition", account, self.written)
        if forced or not self._is_open(candidate, account):
            return None
        named = () if self.one_partition else partitions
        return (*(name for name in named if self._is_open(name, account)), candidate)

    def is_qos_free(self, account: str) -> bool:
        """Return True if the jobs of an account may have any QOS."""
        return self.qos is None and account not in self.forced_qos

    def is_price_admitted(self, job: PendingJob, now: int) -> bool:
        """Return True if no partition of the job costs more than its project has."""
        prices = self.prices
        return prices is None or all(prices.is_paid(job, name, now) for name in job.partitions)

    def _is_open(self, partition: str, account: str) -> bool:
        is_listed = self.listed_partitions is None or partition in self.listed_partitions
        term = closed_by(self.short_terms, "partition", partition, account, self.written)
        return is_listed and term is None


def read_admission_rules(text: bytes) -> AdmissionRules:
    """Read a policy file. Raises InvalidInput if it cannot be read as a whole."""
    header = read_header(text)
    if not header.is_whole:
        raise InvalidInput(
            "it is damaged", field="policy", remedy="write it again: fairbank slurm sync"
        )
    rows: dict[str, list[list[str]]] = defaultdict(list)
    for line in text.decode().splitlines()[1:]:
        kind, *fields = line.split("\t")
        rows[kind].append(fields)
    refuse = [[PolicyAction.REFUSE.value]]
    checks_price = rows["price"] == refuse and rows["balances"] == [["included"]]
    return AdmissionRules(
        listed_partitions=(
            frozenset(row[0] for row in rows["partition"]) if rows["unlisted"] == refuse else None
        ),
        one_partition=rows["list"] == [["refuse"]],
        short_terms=[
            ShortTerm(account, partition or None, reservation or None, int(start), int(end))
            for account, partition, reservation, start, end in rows["short"]
        ],
        written=header.written,
        qos=next((row[0] for row in rows["qos"] if row[0]), None),
        forced_qos={row[2]: row[3] for row in rows["project"] if row[3]},
        prices=_prices(rows, header.written) if checks_price else None,
        exempt=frozenset(int(row[0]) for row in rows["exempt"]),
    )


def _prices(rows: Rows, written: int) -> PolicyPrices:
    scale, stale = (int(rows[kind][0][0]) for kind in ("scale", "stale"))
    return PolicyPrices(
        partitions={
            row[0]: PricedPartition(_partition(row, rows), int(row[5])) for row in rows["partition"]
        },
        factors={name: Fraction(int(factor), scale) for name, factor in rows["factor"]},
        qos_resources={row[0]: row[1] for row in rows["billed"]},
        accounts=frozenset(row[2] for row in rows["project"]),
        credit={(account, resource): int(credit) for account, resource, credit in rows["balance"]},
        until=written + stale,
    )


def _partition(row: Sequence[str], rows: Rows) -> Partition:
    name, resource, rule, denominator, memory_per_cpu, _, cpus, memory, sharing, most = row
    # `any` stays a type, which no weight has: GPUs without a type are of no other one.
    gpus = {kind: int(number) for place, kind, number in rows["gpu"] if place == name}
    return Partition(
        name,
        resource,
        {
            tres: Fraction(int(units), int(denominator))
            for place, tres, units in rows["weight"]
            if place == name
        },
        BillingRule(rule),
        # 0 stands for unknown.
        NodeSize(
            int(most) or None,
            int(memory),
            {"gres/gpu": sum(gpus.values())}
            | {f"gres/gpu:{kind}".lower(): number for kind, number in gpus.items()},
            least_cpus=int(cpus) or None,
        ),
        Memory(int(memory_per_cpu), MemoryUnit.CPU) if int(memory_per_cpu) else None,
        exclusive=sharing == "exclusive" and cpus != "0",
    )
