"""The licences of the cluster: `scontrol --oneliner show license`, of any version."""

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
from fairbank.slurm.parsers.delimited import read
from fairbank.slurm.parsers.scontrol import words_of
from fairbank.slurm.parsers.values import ParsedRows

_COMMAND = "scontrol show license"


class Licence(msgspec.Struct, frozen=True):
    """So many are there, and so many of them are free to jobs."""

    name: str
    total: int
    free: int


def read_licences(text: str) -> ParsedRows[Licence]:
    """None where it says that none are configured."""
    told = "" if text.startswith("No licenses") else text
    return read(_COMMAND, words_of(_COMMAND, told, "LicenseName"), _licence)


def _licence(cells: dict[str, str]) -> Licence:
    total, used = (words.number(cells.get(field, "0"), field) for field in ("Total", "Used"))
    reserved = words.number(cells.get("Reserved", "0"), "Reserved")
    return Licence(cells["LicenseName"], total, max(total - used - reserved, 0))


T = TypeVar("T")

_GPU = re.compile(r"gpu(?::([A-Za-z][\w.-]*))?:(\d{1,6})(?:\([^)]*\))?", re.ASCII)
_NOTHING = frozenset({"", "(null)", "N/A", "NONE"})
_NO_MOST = frozenset({"", "UNLIMITED", "INFINITE", "NONE", "N/A", "(null)"})

# What a node's state is to a job: the first of these words that is said, since `DOWN+DRAIN` is down.
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
    """The nodes, with what jobs may have of them."""
    return _read("node", "NodeName", text, _node)


def read_partitions(text: str) -> ParsedRows[PartitionRules]:
    """The partitions, with their rules."""
    return _read("partition", "PartitionName", text, _partition)


def read_qos_of_partitions(text: str) -> dict[str, str]:
    """The QOS of the partitions that have one, of the same answer."""
    found = _read(
        "partition",
        "PartitionName",
        text,
        lambda cells: (cells["PartitionName"], cells.get("QoS", "N/A")),
    )
    return {name: qos for name, qos in found.rows if qos not in _NOTHING}


def read_least_loaded(text: str) -> tuple[str, ...]:
    """The partitions that give away their least loaded nodes first (LLN), of the same answer."""
    found = _read(
        "partition",
        "PartitionName",
        text,
        lambda cells: cells["PartitionName"] if cells.get("LLN") == "YES" else None,
    )
    return found.rows


def read_reservations(text: str) -> ParsedRows[Reservation]:
    """The reservations of nodes; those of licences alone are left out. Of a node of which only some cores are reserved all is taken."""
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
    return read(command, words_of(command, text, key), reader)


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
        state=_state(_there(cells, "State")),
    )


def _gpus(text: str) -> tuple[Gpus, ...]:
    found: dict[str, int] = {}
    for match in _GPU.finditer(text):
        found[match[1] or ""] = found.get(match[1] or "", 0) + int(match[2])
    return tuple(Gpus(kind, count) for kind, count in sorted(found.items()) if count)


def _state(text: str) -> NodeState:
    """`MIXED+DRAIN`, `DOWN*`; a sign at the end says the same as a word."""
    said = {word.rstrip("*~#!%$@^-") for word in text.split("+")}
    if "*" in text:
        said.add("NOT_RESPONDING")
    if "~" in text:
        said.add("POWERED_DOWN")
    return next((state for word, state in _STATES if word in said), NodeState.UP)


def _partition(cells: dict[str, str]) -> PartitionRules:
    exclusive = cells.get("Exclusive") == "NODE"  # since 26.05; OverSubscribe=EXCLUSIVE before
    sharing, _, rows = ("EXCLUSIVE" if exclusive else cells.get("OverSubscribe", "NO")).partition(
        ":"
    )
    by_cpu, by_node = (_amount(cells, f"DefMemPer{each}") for each in ("CPU", "Node"))
    mode = cells.get("PreemptMode", "")
    limit = cells.get("MaxTime", "")
    return PartitionRules(
        name=ids.name(cells["PartitionName"], field="PartitionName"),
        nodes=tuple(expand(nodes, field="Nodes"))
        if (nodes := cells.get("Nodes", "")) not in _NOTHING
        else (),
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
        f"{words.shown(text)} is not NO, YES, FORCE or EXCLUSIVE", field="OverSubscribe"
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
        users=_let_in(cells.get("Users", "")),
        accounts=_let_in(cells.get("Accounts", "")),
        maintenance="MAINT" in flags,
        flexible="FLEX" in flags,
        any_nodes="ANY_NODES" in flags,
    )


def _let_in(text: str) -> frozenset[str]:
    """Of a list of those who are kept out nobody: whoever was let ask for the reservation is none of them."""
    return frozenset(each for each in _list(text) if not each.startswith("-"))


def _list(text: str) -> list[str]:
    return [] if text in _NOTHING else [each for each in text.split(",") if each]


def _amount(cells: Mapping[str, str], field: str) -> int | None:
    """None for no limit."""
    text = cells.get(field, "")
    return None if text in _NO_MOST else words.number(text, field) or None


def _number(cells: Mapping[str, str], field: str) -> int:
    return words.number(_there(cells, field), field)


def _instant(cells: Mapping[str, str], field: str) -> int:
    return words.submitted(words.instant(_there(cells, field), field), field)


def _there(cells: Mapping[str, str], field: str) -> str:
    if field in cells:
        return cells[field]
    raise InvalidInput("is not there", field=field)
