"""Commands whose output makes a snapshot of the queue, and the reading of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from fairbank.slurm.parsers.config import read_clock, read_config
from fairbank.slurm.parsers.jobs import read_jobs
from fairbank.slurm.parsers.limits import QOS_LIMITS, read_association_limits, read_qos_usage
from fairbank.slurm.parsers.machine import (
    read_hosts,
    read_least_loaded,
    read_licences,
    read_partition_qos,
    read_partition_rules,
    read_reservations,
)
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.queue_snapshot.snapshot import QueueAnswers

T = TypeVar("T")

_SHOW = ("scontrol", "--all", "--oneliner", "show")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "nodes": (*_SHOW, "node"),
    "partitions": (*_SHOW, "partition"),
    "reservations": (*_SHOW, "reservation"),
    "licences": (*_SHOW, "license"),
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


def read_answers(texts: Mapping[str, str]) -> tuple[QueueAnswers, tuple[str, ...]]:
    """Read all output, and return also the lines that could not be read.

    Raises InvalidInput without a time.
    """
    unreadable: list[str] = []

    def rows(answer: ParsedRows[T]) -> tuple[T, ...]:
        unreadable.extend(map(str, answer.unreadable))
        return answer.rows

    fields: dict[str, Any] = {
        "nodes": rows(read_hosts(texts["nodes"])),
        "partitions": rows(read_partition_rules(texts["partitions"])),
        "reservations": rows(read_reservations(texts["reservations"])),
        "jobs": rows(read_jobs(texts["jobs"])),
        "licences": rows(read_licences(texts["licences"])),
        "associations": rows(read_association_limits(texts["limits"])),
        "qos_usage": rows(read_qos_usage(texts["limits"])),
        "qos": rows(QOS_LIMITS.read(texts["qos-limits"])),
    }
    answers = QueueAnswers(
        now=read_clock(texts["config"]),
        config=read_config(texts["config"]),
        partition_qos=read_partition_qos(texts["partitions"]),
        least_loaded=read_least_loaded(texts["partitions"]),
        **fields,
    )
    return answers, tuple(unreadable)
