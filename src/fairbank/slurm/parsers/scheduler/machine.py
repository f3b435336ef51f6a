"""Nodes, partitions, reservations and licences: `scontrol --oneliner show`, of any version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import OverSubscribe, PartitionRules, PreemptMode
from fairbank.cluster.reservation import Reservation
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.core.time import Instant
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import read_rows
from fairbank.slurm.parsers.scontrol import key_value_records
from fairbank.slurm.parsers.values import ParsedRows

_COMMAND = "scontrol show license"


class Licence(msgspec.Struct, frozen=True):
    """Licence: how many exist, and how many are free to jobs."""

    name: str
    total: int
    free: int


def read_licences(text: str) -> ParsedRows[Licence]:
    """Read the licences; none if scontrol prints that none are configured."""
    lines = "" if text.startswith("No licenses") else text
    return read_rows(_COMMAND, key_value_records(_COMMAND, lines, "LicenseName"), _licence)


def _licence(cells: dict[str, str]) -> Licence:
    total, used = (words.number(cells.get(field, "0"), field) for field in ("Total", "Used"))
    reserved = words.number(cells.get("Reserved", "0"), "Reserved")
    return Licence(cells["LicenseName"], total, max(total - used - reserved, 0))


T = TypeVar("T")

_GPU = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?:(\d{1,6})(?:\([^)]*\))?", re.ASCII)
_NOTHING = frozenset({"", "(null)", "N/A", "NONE"})
_NO_MOST = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "N/A", "(null)"})

# State of a node for jobs: the first of these words that it has, since `DOWN+DRAIN` is down.
_STATES = (
    ("FUTURE", NodeState.FUTURE),
    ("NOT_RESPONDING", NodeState.NOT_RESPONDING),
    ("DOWN", NodeState.DOWN),
    ("ERROR", NodeState.DOWN),
    ("UNKNOWN", NodeState.DOWN),
    ("POWERING_DOWN", NodeState.DOWN),
    ("REBOOT_ISSUED", NodeState.DOWN),
    ("FAIL", NodeState.FAILED),
    ("FAILING", NodeState.FAILED),
    ("DRAIN", NodeState.DRAINED),
    ("DRAINED", NodeState.DRAINED),
    ("DRAINING", NodeState.DRAINED),
    ("POWERING_UP", NodeState.POWERING_UP),
    ("POWERED_DOWN", NodeState.POWERED_DOWN),
)


def read_hosts(text: str) -> ParsedRows[Node]:
    """Read the nodes with what jobs may use of them."""
    return _read("node", "NodeName", text, _node)


def read_partition_rules(text: str) -> ParsedRows[PartitionRules]:
    """Read the partitions with their rules."""
    return _read("partition", "PartitionName", text, _partition_rules)


def read_partition_qos(text: str) -> dict[str, str]:
    """Read the QOS of partitions that have one, from the same output."""
    pairs = _read(
        "partition",
        "PartitionName",
        text,
        lambda cells: (cells["PartitionName"], cells.get("QoS", "N/A")),
    )
    return {name: qos for name, qos in pairs.rows if qos not in _NOTHING}


def read_least_loaded(text: str) -> tuple[str, ...]:
    """Read the partitions that prefer their least loaded nodes (LLN), from the same output."""
    names = _read(
        "partition",
        "PartitionName",
        text,
        lambda cells: cells["PartitionName"] if cells.get("LLN") == "YES" else None,
    )
    return names.rows


def read_reservations(text: str) -> ParsedRows[Reservation]:
    """Read the reservations of nodes; those of licences are left out.

    If only some cores of a node are reserved, the whole node counts as reserved.
    """
    return _read(
        "reservation",
        "ReservationName",
        text.replace("No reservations in the system", ""),
        _reservation,
    )


def _read(
    what: str, key: str, text: str, reader: Callable[[dict[str, str]], T | None]
) -> ParsedRows[T]:
    command = f"scontrol show {what}"
    return read_rows(command, key_value_records(command, text, key), reader)


def _node(cells: dict[str, str]) -> Node:
    cpus = _number(cells, "CPUTot")
    reserved = words.number(cells.get("MemSpecLimit", "0"), "MemSpecLimit")
    return Node(
        name=cells["NodeName"],
        cpus=_number(cells, "CPUEfctv") if "CPUEfctv" in cells else cpus,
        threads=min(
            max(words.number(cells.get("ThreadsPerCore", "1"), "ThreadsPerCore"), 1), max(cpus, 1)
        ),
        memory=max(_number(cells, "RealMemory") - reserved, 1),
        tmp=words.number(cells.get("TmpDisk", "0"), "TmpDisk"),
        gpus=_gpus(cells.get("Gres", "")),
        features=frozenset(_list(cells.get("ActiveFeatures", ""))),
        weight=words.number(cells.get("Weight", "1"), "Weight"),
        state=_state(words.required(cells, "State")),
    )


def _gpus(text: str) -> tuple[Gpus, ...]:
    counts: dict[str, int] = {}
    for match in _GPU.finditer(text):
        counts[match[1] or ""] = counts.get(match[1] or "", 0) + int(match[2])
    return tuple(Gpus(kind, count) for kind, count in sorted(counts.items()) if count)


def _state(text: str) -> NodeState:
    """Return the state of `MIXED+DRAIN` or `DOWN*`; a sign at the end means the same as a word."""
    state_words = {word.rstrip("*~#!%$@^-") for word in text.split("+")}
    if "*" in text:
        state_words.add("NOT_RESPONDING")
    if "~" in text:
        state_words.add("POWERED_DOWN")
    return next((state for word, state in _STATES if word in state_words), NodeState.UP)


def _partition_rules(cells: dict[str, str]) -> PartitionRules:
    exclusive = cells.get("Exclusive") == "NODE"  # since 26.05; OverSubscribe=EXCLUSIVE before
    sharing, _, rows = ("EXCLUSIVE" if exclusive else cells.get("OverSubscribe", "NO")).partition(
        ":"
    )
    by_cpu, by_node = (_amount(cells, f"DefMemPer{each}") for each in ("CPU", "Node"))
    mode = cells.get("PreemptMode", "")
    limit = cells.get("MaxTime", "")
    return PartitionRules(
        name=ids.name(cells["PartitionName"], field="PartitionName"),
        nodes=(
            tuple(expand(nodes, field="Nodes"))
            if (nodes := cells.get("Nodes", "")) not in _NOTHING
            else ()
        ),
        up=cells.get("State", "UP") in ("UP", "DRAIN"),
        tier=words.number(cells.get("PriorityTier", "1"), "PriorityTier"),
        max_seconds=None if limit in _NO_MOST else words.length_seconds(limit, "MaxTime"),
        min_nodes=words.number(cells.get("MinNodes", "0"), "MinNodes"),
        max_nodes=_amount(cells, "MaxNodes"),
        sharing=_sharing(sharing),
        rows=words.number(rows, "OverSubscribe") if rows else 4,
        memory_per_cpu=by_cpu,
        memory_per_node=None if by_cpu else by_node,
        preempted=PreemptMode(mode) if mode in PreemptMode.__members__ else None,
    )


def _sharing(text: str) -> OverSubscribe:
    if text in OverSubscribe.__members__:
        return OverSubscribe[text]
    raise InvalidInput(
        f"{words.quoted(text)} is not NO, YES, FORCE or EXCLUSIVE", field="OverSubscribe"
    )


def _reservation(cells: dict[str, str]) -> Reservation | None:
    nodes, flags = cells.get("Nodes", ""), frozenset(_list(cells.get("Flags", "")))
    if nodes in _NOTHING:
        return None
    return Reservation(
        name=cells["ReservationName"],
        nodes=tuple(expand(nodes, field="Nodes")),
        begin=Instant(_instant(cells, "StartTime")),
        end=Instant(_instant(cells, "EndTime")),
        users=_allowed_names(cells.get("Users", "")),
        accounts=_allowed_names(cells.get("Accounts", "")),
        maintenance="MAINT" in flags,
        flexible="FLEX" in flags,
        any_nodes="ANY_NODES" in flags,
    )


def _allowed_names(text: str) -> frozenset[str]:
    """Return the allowed names.

    Excluded names (`-alice`) are ignored: Slurm accepted the request, so its user is not one of
    them.
    """
    return frozenset(name for name in _list(text) if not name.startswith("-"))


def _list(text: str) -> list[str]:
    return [] if text in _NOTHING else [name for name in text.split(",") if name]


def _amount(cells: Mapping[str, str], field: str) -> int | None:
    """Return a number, or None for no limit."""
    text = cells.get(field, "")
    return None if text in _NO_MOST else words.number(text, field) or None


def _number(cells: Mapping[str, str], field: str) -> int:
    return words.number(words.required(cells, field), field)


def _instant(cells: Mapping[str, str], field: str) -> int:
    return words.required_instant(words.instant(words.required(cells, field), field), field)
