"""Output of Slurm's commands that a snapshot of the queue needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from fairbank.cluster.accounting_job import UnreadableLine
from fairbank.cluster.license import License
from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.cluster.reservation import Reservation
from fairbank.priority.limits.usage import LimitRecord
from fairbank.slurm.parsers.config import read_clock, read_config
from fairbank.slurm.parsers.jobs import SlurmJob, read_jobs
from fairbank.slurm.parsers.limits import (
    QOS_LIMITS,
    QosRecord,
    read_association_limits,
    read_qos_usage,
)
from fairbank.slurm.parsers.machine import (
    read_hosts,
    read_least_loaded,
    read_licenses,
    read_partition_rules,
    read_reservations,
)
from fairbank.slurm.parsers.values import ParsedRows


class QueueAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Output of Slurm at `now`, in seconds since 1970.

    `least_loaded`: partitions that prefer such nodes. `groups`: Unix groups of users, as far as
    they are known. `fair_shares`: by job, what slurmctld compares with the UsageThreshold of its
    QOS, if it is known. `unread_nodes`: names of nodes whose lines could not be read; jobs may run
    there.
    """

    now: int
    config: Mapping[str, str]
    nodes: Sequence[Node]
    unread_nodes: Collection[str] = ()
    partitions: Sequence[PartitionRules]
    reservations: Sequence[Reservation]
    jobs: Sequence[SlurmJob]
    associations: Sequence[LimitRecord] = ()
    qos: Sequence[QosRecord] = ()
    qos_usage: Sequence[LimitRecord] = ()
    licenses: Sequence[License] = ()
    least_loaded: Sequence[str] = ()
    groups: Mapping[str, tuple[str, ...]] = {}
    fair_shares: Mapping[int, float] = {}


T = TypeVar("T")

_SHOW = ("scontrol", "--all", "--oneliner", "show")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "nodes": (*_SHOW, "node"),
    "partitions": (*_SHOW, "partition"),
    "reservations": (*_SHOW, "reservation"),
    "licenses": (*_SHOW, "license"),
    "limits": (*_SHOW, "assoc_mgr", "flags=assoc,qos"),
    "qos-limits": (
        "sacctmgr",
        "--noheader",
        "--parsable2",
        "show",
        "qos",
        f"format={','.join(QOS_LIMITS.columns).lower()}",
    ),
    "jobs": ("scontrol", "--all", "--details", "--oneliner", "show", "job"),
    "config": ("scontrol", "show", "config"),
}
"""By the names of the files in which output is recorded. Times must be in UTC.

Jobs come late, because they change fastest. The settings come last: they have the time, which must
not lie before the other output.
"""


def read_answers(texts: Mapping[str, str]) -> tuple[QueueAnswers, tuple[UnreadableLine, ...]]:
    """Read all output, and return also the lines that could not be read.

    Raises InvalidInput without a time.
    """
    unreadable: list[UnreadableLine] = []

    def rows(answer: ParsedRows[T]) -> tuple[T, ...]:
        unreadable.extend(answer.unreadable)
        return answer.rows

    hosts, partitions = read_hosts(texts["nodes"]), rows(read_partition_rules(texts["partitions"]))
    if hosts.unreadable:
        partitions = _without_others(partitions, {node.name for node in hosts.rows})
    fields: dict[str, Any] = {
        "nodes": rows(hosts),
        "unread_nodes": frozenset(line.entity for line in hosts.unreadable),
        "partitions": partitions,
        "reservations": rows(read_reservations(texts["reservations"])),
        "jobs": rows(read_jobs(texts["jobs"])),
        "licenses": rows(read_licenses(texts["licenses"])),
        "associations": rows(read_association_limits(texts["limits"])),
        "qos_usage": rows(read_qos_usage(texts["limits"])),
        "qos": rows(QOS_LIMITS.read(texts["qos-limits"])),
    }
    answers = QueueAnswers(
        now=read_clock(texts["config"]),
        config=read_config(texts["config"]),
        least_loaded=read_least_loaded(texts["partitions"]),
        **fields,
    )
    return answers, tuple(unreadable)


def _without_others(
    partitions: Iterable[PartitionRules], nodes: Collection[str]
) -> tuple[PartitionRules, ...]:
    """Return the partitions without nodes other than these, where they have one of them."""
    kept = []
    for rules in partitions:
        names = tuple(name for name in rules.nodes if name in nodes)
        # A partition with no node at all would mean all nodes.
        kept.append(msgspec.structs.replace(rules, nodes=names) if names else rules)
    return tuple(kept)
