"""Nodes, partitions, reservations and licenses: `scontrol --oneliner show`, of any version.

Nodes and partitions are read in two ways: as they are configured (`SlurmNode`, `SlurmPartition`),
and as the scheduler uses them (`Node`, `PartitionRules`), which needs more of their settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.license import License
from fairbank.cluster.node import Gpus, Node, NodeState
from fairbank.cluster.partition_rules import (
    AccessList,
    OverSubscribe,
    PartitionRules,
    PartitionState,
    PreemptMode,
)
from fairbank.cluster.reservation import Reservation
from fairbank.core.errors import InvalidInput
from fairbank.core.gres import gres_counts, parse_gres
from fairbank.core.hostlist import expand
from fairbank.core.time import Instant, parse_instant
from fairbank.core.tres import Weights, parse_weights
from fairbank.report.slurm.notation import ALL, NO, NODE_SIGNS, NULL, UNLIMITED_WORDS, YES
from fairbank.report.slurm.scontrol import NO_LICENSES, NO_RESERVATIONS
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, key_value_records, read_rows
from fairbank.slurm.parsers.values import ParsedRows, SlurmNode, SlurmPartition

T = TypeVar("T")

ANY_GPU = "any"
_REASON = re.compile(r" Reason=(.*?) ?\[([^\]@ ]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\]", re.ASCII)
_NO_MOST = words.UNSET | UNLIMITED_WORDS

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


def _read(what: str, key: str, text: str, reader: Callable[[Cells], T | None]) -> ParsedRows[T]:
    command = f"scontrol show {what}"
    return read_rows(command, key_value_records(command, text, key), reader)


# --- nodes ---


def read_nodes(text: str) -> ParsedRows[SlurmNode]:
    """Read the nodes as they are configured."""
    return _read("node", "NodeName", text, _slurm_node)


def _slurm_node(cells: Cells) -> SlurmNode:
    cpus, memory = cells.read("CPUTot", words.number), cells.read("RealMemory", words.number)
    return SlurmNode(
        cells["NodeName"],
        cpus,
        memory,
        tuple(_list(cells, "Partitions")),
        tuple(sorted({gpus.type or ANY_GPU for gpus in cells.read("Gres", _gpus, "")})),
        NodeSize(_usable_cpus(cells, cpus), _usable_memory(cells), cells.read("Gres", _gres, "")),
    )


def _gres(text: str, field: str) -> dict[str, int]:
    return {} if text in words.UNSET else gres_counts(parse_gres(text, field=field))


def _usable_cpus(cells: Cells, total: int) -> int:
    """Return the CPUs for jobs. Older versions print only the total."""
    return cells.read("CPUEfctv", words.number) if "CPUEfctv" in cells else total


def _usable_memory(cells: Cells) -> int:
    reserved = cells.read("MemSpecLimit", words.number, "0")
    return max(cells.read("RealMemory", words.number) - reserved, 1)


def read_hosts(text: str) -> ParsedRows[Node]:
    """Read the nodes with what jobs may use of them."""
    lines = text.split("\n")
    return _read("node", "NodeName", text, lambda cells: _node(cells, lines[cells.line - 1]))


def _node(cells: Cells, line: str) -> Node:
    cpus = cells.read("CPUTot", words.number)
    reason, reason_since = _reason(line)
    return Node(
        name=cells["NodeName"],
        cpus=_usable_cpus(cells, cpus),
        threads=min(max(cells.read("ThreadsPerCore", words.number, "1"), 1), max(cpus, 1)),
        memory=_usable_memory(cells),
        tmp=cells.read("TmpDisk", words.number, "0"),
        gpus=cells.read("Gres", _gpus, ""),
        features=frozenset(_list(cells, "ActiveFeatures")),
        weight=cells.read("Weight", words.number, "1"),
        state=cells.read("State", _state),
        reason=reason,
        reason_since=reason_since,
    )


def _gpus(text: str, field: str) -> tuple[Gpus, ...]:
    return () if text in words.UNSET else words.gpus(text, field)


def _state(text: str, field: str) -> NodeState:
    """Return the state of `MIXED+DRAIN` or `DOWN*`; a sign at the end means the same as a word."""
    state_words = {word.rstrip(NODE_SIGNS) for word in text.split("+")}
    if "*" in text:
        state_words.add("NOT_RESPONDING")
    if "~" in text:
        state_words.add("POWERED_DOWN")
    return next((state for word, state in _STATES if word in state_words), NodeState.UP)


def _reason(line: str) -> tuple[str, int | None]:
    """Return the reason of a state, which may contain anything, with its time in UTC as `iso`
    writes it, and that time; an empty text and None without one.
    """
    match = _REASON.search(line)
    if match is None:
        return "", None
    since = f"{match[3]}Z"
    return f"{match[1]} (by {match[2]}, {since})", parse_instant(since, field="Reason")


# --- partitions ---


def read_partitions(text: str) -> ParsedRows[SlurmPartition]:
    """Read the partitions as they are configured."""
    return _read("partition", "PartitionName", text, _slurm_partition)


def _slurm_partition(cells: Cells) -> SlurmPartition:
    weights = cells.get("TRESBillingWeights", "").replace(NULL, "")
    if weights:
        parse_weights(weights, field="TRESBillingWeights")
    return SlurmPartition(
        cells.read("PartitionName", words.name),
        cells.get("Nodes", ""),
        weights or None,
        cells.read("DefaultTime", words.length_minutes, ""),
        cells.read("DefMemPerCPU", _optional_number, "") or 0,
        cells.read("MaxTime", words.length_minutes, ""),
        cells.read("PriorityJobFactor", partial(words.number, most=65_535), "1"),
        words.tres(cells.get("TRES", "").replace(NULL, ""), "TRES"),
        cells.get("Default") == YES,
        _partition_memory(cells),
        _sharing(cells) == OverSubscribe.EXCLUSIVE.value,
    )


def _sharing(cells: Cells) -> str:
    """Return OverSubscribe, such as FORCE:4. Since 26.05 Exclusive=NODE stands for EXCLUSIVE."""
    return "EXCLUSIVE" if cells.get("Exclusive") == "NODE" else cells.get("OverSubscribe", NO)


def _partition_memory(cells: Cells) -> Memory | None:
    """Return the default memory. Slurm prints DefMemPerNode=UNLIMITED if the partition has none."""
    for field, unit in (("DefMemPerCPU", MemoryUnit.CPU), ("DefMemPerNode", MemoryUnit.NODE)):
        if (size := cells.read(field, _optional_number, "")) is not None:
            return Memory(size, unit)
    return None


def read_partition_names(text: str) -> tuple[str, ...]:
    """Read the names of all partitions, whatever their other cells are."""
    return _read("partition", "PartitionName", text, lambda cells: cells["PartitionName"]).rows


def read_partition_rules(text: str) -> ParsedRows[PartitionRules]:
    """Read the partitions with their rules."""
    return _read("partition", "PartitionName", text, _partition_rules)


def read_least_loaded(text: str) -> tuple[str, ...]:
    """Read the partitions that prefer their least loaded nodes (LLN), from the same output."""
    names = _read(
        "partition",
        "PartitionName",
        text,
        lambda cells: cells["PartitionName"] if cells.get("LLN") == YES else None,
    )
    return names.rows


def _partition_rules(cells: Cells) -> PartitionRules:
    sharing, _, rows = _sharing(cells).partition(":")
    if sharing not in OverSubscribe.__members__:
        raise InvalidInput(
            f"{words.quote_unknown(sharing)} is not NO, YES, FORCE or EXCLUSIVE",
            field="OverSubscribe",
        )
    by_cpu = cells.read("DefMemPerCPU", _optional_number, "")
    by_node = cells.read("DefMemPerNode", _optional_number, "")
    mode = cells.get("PreemptMode", "")
    return PartitionRules(
        name=cells.read("PartitionName", words.name),
        nodes=_hosts(cells),
        state=cells.read("State", _partition_state, "UP"),
        tier=cells.read("PriorityTier", words.number, "1"),
        max_seconds=cells.read("MaxTime", words.finite_length, ""),
        min_nodes=cells.read("MinNodes", words.number, "0"),
        max_nodes=cells.read("MaxNodes", _optional_number, ""),
        sharing=OverSubscribe[sharing],
        rows=words.number(rows, "OverSubscribe") if rows else 4,
        memory_per_cpu=by_cpu,
        memory_per_node=None if by_cpu else by_node,
        preempted=PreemptMode(mode) if mode in PreemptMode.__members__ else None,
        max_cpus_per_node=cells.read("MaxCPUsPerNode", _optional_number, ""),
        max_memory_per_node=cells.read("MaxMemPerNode", _optional_number, ""),
        accounts=_access_list(cells, "Accounts", "AccountNotAllowed"),
        qos=_access_list(cells, "Qos", "QOSNotAllowed"),
        groups=_allowed(cells, "Groups", "AccountNotAllowed"),
        needs_reservation=cells.get("ReqResv") == YES,
        root_only=cells.get("RootOnly") == YES,
        submit_hosts=cells.read("AllocNodes", _submit_hosts, ALL),
        default_seconds=cells.read("DefaultTime", words.finite_length, ""),
        weights=_weights(cells),
        max_memory_per_cpu=cells.read("MaxMemPerCPU", _optional_number, ""),
        is_default=cells.get("Default") == YES,
        partition_qos=_text(cells, "QoS") or None,
        factor=cells.read("PriorityJobFactor", words.number, "1"),
        grace_seconds=cells.read("GraceTime", words.number, "0"),
    )


def _partition_state(text: str, field: str) -> PartitionState:
    if text in PartitionState.__members__:
        return PartitionState[text]
    raise InvalidInput(f"{words.quote_unknown(text)} is not a state of a partition", field=field)


def _weights(cells: Cells) -> Weights | None:
    """Return the billing weights. Slurm drops all if it cannot read one."""
    text = ",".join(_list(cells, "TRESBillingWeights"))
    try:
        return parse_weights(text) if text else None
    except InvalidInput:
        return None


def _access_list(cells: Cells, kind: str, reason: str) -> AccessList | None:
    """Return the allowed names, else the denied ones: Slurm tests only one of both lists."""
    denied = _list(cells, f"Deny{kind}")
    return _allowed(cells, kind, reason) or (
        AccessList(tuple(denied), reason, denies=True) if denied else None
    )


def _allowed(cells: Cells, kind: str, reason: str) -> AccessList | None:
    allowed = _list(cells, f"Allow{kind}")
    return AccessList(tuple(allowed), reason) if allowed and allowed != [ALL] else None


# --- reservations and licenses ---


def read_reservations(text: str) -> ParsedRows[Reservation]:
    """Read the reservations of nodes; those of licenses are left out.

    If only some cores of a node are reserved, the whole node counts as reserved.
    """
    return _read("reservation", "ReservationName", _without_remark(text), _reservation)


def read_reservation_names(text: str) -> tuple[str, ...]:
    """Read the names of all reservations, whatever their other cells are."""
    name = "ReservationName"
    return _read("reservation", name, _without_remark(text), lambda cells: cells[name]).rows


def _without_remark(text: str) -> str:
    return text.replace(NO_RESERVATIONS, "")


def _reservation(cells: Cells) -> Reservation | None:
    nodes, flags = _hosts(cells), _list(cells, "Flags")
    if not nodes:
        return None
    return Reservation(
        name=cells["ReservationName"],
        nodes=nodes,
        begin=Instant(cells.read("StartTime", words.known_instant)),
        end=Instant(cells.read("EndTime", words.known_instant)),
        users=_allowed_names(cells, "Users"),
        accounts=_allowed_names(cells, "Accounts"),
        maintenance="MAINT" in flags,
        flexible="FLEX" in flags,
        any_nodes="ANY_NODES" in flags,
        groups=_allowed_names(cells, "Groups"),
        ignores_jobs="IGNORE_JOBS" in flags,
        overlapping="OVERLAP" in flags,
        partition=_text(cells, "PartitionName"),
        features=_text(cells, "Features"),
        licenses=words.licenses(_text(cells, "Licenses"), "Licenses"),
    )


def _allowed_names(cells: Cells, field: str) -> frozenset[str]:
    """Return the allowed names.

    Excluded names (`-alice`) are ignored: Slurm accepted the request, so its user is not one of
    them.
    """
    return frozenset(name for name in _list(cells, field) if not name.startswith("-"))


def read_licenses(text: str) -> ParsedRows[License]:
    """Read the licenses; none if scontrol prints that none are configured."""
    lines = "" if text.startswith(NO_LICENSES) else text
    return _read("license", "LicenseName", lines, _license)


def _license(cells: Cells) -> License:
    total, used, reserved = (
        cells.read(field, words.number, "0") for field in ("Total", "Used", "Reserved")
    )
    return License(cells["LicenseName"], total, max(total - used - reserved, 0))


# --- cells ---


def _list(cells: Cells, field: str) -> list[str]:
    return [name for name in _text(cells, field).split(",") if name]


def _text(cells: Cells, field: str) -> str:
    text = cells.get(field, "")
    return "" if text in words.UNSET else text


def _hosts(cells: Cells) -> tuple[str, ...]:
    nodes = cells.get("Nodes", "")
    return () if nodes in words.UNSET else tuple(expand(nodes, field="Nodes"))


def _submit_hosts(text: str, field: str) -> tuple[str, ...] | None:
    return None if text in words.UNSET | {ALL} else tuple(expand(text, field=field))


def _optional_number(text: str, field: str) -> int | None:
    """Return a number, or None for no limit."""
    return None if text in _NO_MOST else words.number(text, field) or None
