"""What to ask a Slurm for a snapshot of its queue, and what it answered, read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from fairbank.slurm.parsers.jobs import read_jobs
from fairbank.slurm.parsers.limits import (
    QUALITIES,
    read_bounds,
    read_limits_of_qualities,
    read_usage_of_qualities,
)
from fairbank.slurm.parsers.machine import (
    read_hosts,
    read_least_loaded,
    read_licences,
    read_partitions,
    read_qos_of_partitions,
    read_reservations,
)
from fairbank.slurm.parsers.scontrol import read_clock, read_config
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.queue_snapshot.snapshot import Answers

T = TypeVar("T")

_SHOW = ("scontrol", "--all", "--oneliner", "show")

QUESTIONS: Mapping[str, tuple[str, ...]] = {
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
        f"format={','.join(QUALITIES).lower()}",
    ),
    "jobs": ("scontrol", "--all", "--details", "--oneliner", "show", "job"),
    "config": ("scontrol", "show", "config"),
}
"""By the names of the files in which answers are kept. Times must be in UTC. Jobs come late, since they change quickest, and the settings
last: they tell the time, before which all the others were told."""


def read_answers(texts: Mapping[str, str]) -> tuple[Answers, tuple[str, ...]]:
    """The answers to all of these, and what in them could not be read. Raises InvalidInput where it is not told when they were given."""
    unread: list[str] = []

    def rows(answer: ParsedRows[T]) -> tuple[T, ...]:
        unread.extend(map(str, answer.unreadable))
        return answer.rows

    found: dict[str, Any] = {
        "nodes": rows(read_hosts(texts["nodes"])),
        "partitions": rows(read_partitions(texts["partitions"])),
        "reservations": rows(read_reservations(texts["reservations"])),
        "jobs": rows(read_jobs(texts["jobs"])),
        "licences": rows(read_licences(texts["licences"])),
        "associations": rows(read_bounds(texts["limits"])),
        "used_by_qualities": rows(read_usage_of_qualities(texts["limits"])),
        "qualities": rows(read_limits_of_qualities(texts["qos-limits"])),
    }
    said = Answers(
        now=read_clock(texts["config"]),
        config=read_config(texts["config"]),
        of_partition=read_qos_of_partitions(texts["partitions"]),
        least_loaded=read_least_loaded(texts["partitions"]),
        **found,
    )
    return said, tuple(unread)
