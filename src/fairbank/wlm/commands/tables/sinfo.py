"""sinfo: partitions and nodes."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import compress, expand
from fairbank.report.slurm import sinfo
from fairbank.report.slurm.layout import TableFormat, parse_letters, parse_names
from fairbank.report.slurm.machine_rows import NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.notation import (
    NODE_SIGNS,
    NODE_STATES,
    REASON_NONE,
    Notation,
    clock,
    time,
)
from fairbank.report.slurm.sinfo import Counts, NodeGroup
from fairbank.unix_users import find_uid
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandLine, CommandOption, read_command_line
from fairbank.wlm.commands.tables.rows import (
    check_cluster,
    fetch,
    notation,
    print_rows,
    repeat,
    report_unknown,
    stored_fields,
)

OPTIONS = (
    CommandOption("all", "a", "", "no effect: no partition is hidden", "SINFO_ALL"),
    CommandOption("dead", "d", "", "only nodes that do not respond"),
    CommandOption("exact", "e", "", "group nodes only if their sizes are the same"),
    CommandOption("noheader", "h", "", "print no header"),
    CommandOption("iterate", "i", "SECONDS", "repeat the output until a signal"),
    CommandOption("json", "", "[VERSION]", "print JSON"),
    CommandOption("long", "l", "", "show more columns"),
    CommandOption("clusters", "M", "NAMES", "name of this cluster", "SLURM_CLUSTERS"),
    CommandOption("nodes", "n", "NODES", "only these nodes"),
    CommandOption("noconvert", "", "", "print numbers without units"),
    CommandOption("Node", "N", "", "show each node in a line"),
    CommandOption("format", "o", "FORMAT", "columns by letters, such as '%9P %N'"),
    CommandOption("Format", "O", "FORMAT", "columns by names, such as Partition:9,NodeList"),
    CommandOption("partition", "p", "NAMES", "only these partitions", "SINFO_PARTITION"),
    CommandOption("responding", "r", "", "only nodes that respond"),
    CommandOption("list-reasons", "R", "", "show why nodes are down or drained"),
    CommandOption("summarize", "s", "", "show a partition in a line, without states"),
    CommandOption(
        "sort", "S", "COLUMNS", "letters of columns, - reverses; default: #P,-t", "SINFO_SORT"
    ),
    CommandOption("states", "t", "STATES", "only nodes in these states"),
    CommandOption("reservation", "T", "", "show the reservations"),
    CommandOption("verbose", "v", "", "print the time"),
)


class GroupField(NamedTuple):
    """Field of a group: the fields of its nodes that it needs, and how it follows from them."""

    needs: tuple[str, ...]
    make: Callable[[Sequence[Any]], Any]


def _shared(field: str, default: Any = None) -> GroupField:
    """Return a field that all nodes of a group share; the default stands for an empty one."""
    return GroupField((field,), lambda nodes: getattr(nodes[0], field) or default)


def _spread(field: str) -> GroupField:
    def make(nodes: Sequence[Any]) -> tuple[int, int] | None:
        values = [value for node in nodes if (value := getattr(node, field)) is not None]
        return (min(values), max(values)) if values else None

    return GroupField((field,), make)


def _joined(field: str) -> GroupField:
    def make(nodes: Sequence[Any]) -> str:
        return compress(sorted({getattr(node, field) or "" for node in nodes}, key=_natural))

    return GroupField((field,), make)


_SPREADS = {
    name: _spread(name)
    for name in (
        "cpus", "sockets", "cores", "threads", "memory", "tmp", "weight", "load", "free_memory"
    )
}  # fmt: skip
_PARTS: Mapping[str, GroupField] = {
    "state": _shared("shown_state"),
    "nodes": _joined("name"),
    "hosts": _joined("host"),
    "addresses": _joined("address"),
    "node_counts": GroupField(("shown_state",), lambda nodes: _total(map(_node_counts, nodes))),
    "cpu_counts": GroupField(
        ("shown_state", "cpus", "allocated_cpus"), lambda nodes: _total(map(_cpu_counts, nodes))
    ),
    "allocated_memory": GroupField(
        ("allocated_memory",), lambda nodes: sum(node.allocated_memory for node in nodes)
    ),
    "port": _shared("port", 0),
    "reservation": _shared("reservation", ""),
    "reason": _shared("reason", REASON_NONE),
    "reason_uid": GroupField(("reason_user",), lambda nodes: find_uid(nodes[0].reason_user)),
    **{
        name: _shared(name)
        for name in (
            "features", "active_features", "gres", "gres_used", "reason_user", "reason_time",
            "version", "comment", "extra",
        )
    },
    **_SPREADS,
}  # fmt: skip
_SUMMED = frozenset({"nodes", "node_counts", "cpu_counts", "allocated_memory", *_SPREADS})
"""Fields in which the nodes of a group may differ."""


def run(name: str, words: Sequence[str]) -> int:
    """Print partitions and nodes, and return the exit code."""
    line = read_command_line(name, "[OPTIONS]", OPTIONS, words)
    if line is None:
        return 0
    with Controller() as controller:
        show = _show_reservations if "reservation" in line.options else _show
        return repeat(line, partial(show, controller, line))


def _show(controller: Controller, line: CommandLine) -> int:
    is_json = "json" in line.options
    form, text = _format(line)
    message = sinfo.UNKNOWN_COLUMN if "Format" in line.options else sinfo.UNKNOWN_LETTER
    report_unknown("sinfo", message, form.unknown)
    shown = NodeGroup._fields if is_json else _fields(form)
    groups, now = _groups(controller, line, shown, form)
    if is_json:
        from fairbank.report.slurm import json_forms

        print(json_forms.node_groups(groups))
        return 0
    print_rows(line, groups, sinfo.default_format(text, groups) if text else form, now)
    return 0


def _format(line: CommandLine) -> tuple[TableFormat, str]:
    """Return the columns, and the default format that they are; empty for another."""
    options = line.options
    if "format" in options:
        return parse_letters(options["format"], sinfo.COLUMNS), ""
    if "Format" in options:
        return parse_names(options["Format"], sinfo.COLUMNS), ""
    is_long = "long" in options
    if "summarize" in options:
        text = sinfo.SUMMARY_FORMAT
    elif "Node" in options:
        text = sinfo.LONG_NODE_FORMAT if is_long else sinfo.NODE_FORMAT
    elif "list-reasons" in options:
        text = sinfo.LONG_REASON_FORMAT if is_long else sinfo.REASON_FORMAT
    elif is_long:
        text = sinfo.LONG_FORMAT
    elif names := os.environ.get("SINFO_FORMAT2"):
        return parse_names(names, sinfo.COLUMNS), ""
    elif letters := os.environ.get("SINFO_FORMAT"):
        return parse_letters(letters, sinfo.COLUMNS), ""
    else:
        text = sinfo.FORMAT
    return parse_names(text, sinfo.COLUMNS), text


def _fields(form: TableFormat) -> list[str]:
    """Return the fields of a group that the columns show."""
    return stored_fields(NodeGroup, [cell.column.field for cell in form.cells if cell.column])


# --- groups ---


def _groups(
    controller: Controller, line: CommandLine, shown: Sequence[str], form: TableFormat
) -> tuple[list[NodeGroup], int]:
    """Return the groups of nodes in order, and the time of the controller."""
    fields = [name for name in shown if name in _PARTS]
    sort = line.options.get("sort", "N" if "Node" in line.options else "#P,-t")
    fields += ["node_counts", "state"] if "state" not in fields and "t" in sort.lower() else []
    needs = {"name", "shown_state", "reason"}.union(*(_PARTS[name].needs for name in fields))
    matching = {"partitions": line.items("partition")}
    partitions = fetch(controller, "partitions", PartitionLine, PartitionLine._fields, matching)
    check_cluster(line, partitions.cluster)
    only = {"nodes": expand(line.options.get("nodes", ""))}
    nodes = fetch(controller, "nodes", NodeLine, sorted(needs), only)
    chosen = {node.name: node for node in nodes.rows if _is_wanted(node, line)}
    same = [name for name in shown if name in _PARTS and name not in _SUMMED]
    if "exact" in line.options:
        same += [name for name in shown if name in _SPREADS]
    groups: dict[Any, list[Any]] = {}
    owners: dict[Any, PartitionLine] = {}
    for partition, node in _members(partitions.rows, chosen, line):
        key = (
            _partition_key(partition, form),
            node
            and (
                node.name if "Node" in line.options else None,
                *(_PARTS[name].make([node]) for name in same),
            ),
        )
        owners.setdefault(key, partition)
        members = groups.setdefault(key, [])
        if node is not None and node not in members:
            members.append(node)
    made = []
    for key, members in groups.items():
        values = {name: _PARTS[name].make(members) for name in fields} if members else {"state": ""}
        made.append(NodeGroup(owners[key], cluster=partitions.cluster, **values))
    places = {partition.name: place for place, partition in enumerate(partitions.rows)}
    return _sorted(made, sort, places), partitions.now


def _members(
    partitions: Sequence[Any], chosen: Mapping[str, Any], line: CommandLine
) -> Iterator[tuple[PartitionLine, Any]]:
    """Yield each node with each of its partitions, and None for partitions without any."""
    is_filtered = {"nodes", "states", "dead", "responding", "list-reasons", "Node"} & set(
        line.options
    )
    for row in partitions:
        partition = PartitionLine(**row._asdict())
        names = expand(partition.nodes)
        yield from ((partition, chosen[name]) for name in names if name in chosen)
        if not names and not is_filtered:
            yield partition, None


def _partition_key(partition: PartitionLine, form: TableFormat) -> tuple[Any, ...]:
    """Return what the columns show of a partition. Nodes of several that look alike are merged."""
    cells = (cell.column for cell in form.cells if cell.column)
    return tuple(
        str(column.cell(NodeGroup(partition), Notation()))
        for column in cells
        if column.field == "partition"
    )


def _is_wanted(node: Any, line: CommandLine) -> bool:
    is_silent = node.shown_state.endswith("*")
    if ("dead" in line.options and not is_silent) or ("responding" in line.options and is_silent):
        return False
    if "list-reasons" in line.options and not node.reason:
        return False
    wanted = [_state_name(item) for item in line.items("states")]
    state = node.shown_state.rstrip(NODE_SIGNS)
    return (
        not wanted
        or state in wanted
        or "ALL" in wanted
        or ("DRAIN" in wanted and state in ("DRAINED", "DRAINING"))
    )


def _state_name(text: str) -> str:
    """Return a state of nodes in full. Raises InvalidInput."""
    word = text.upper()
    if word in ("ALL", "DRAIN") or word in NODE_STATES:
        return word
    for name, short in NODE_STATES.items():
        if short == word.lower() or (word == "ALLOC" and name == "ALLOCATED"):
            return name
    raise InvalidInput(
        f'Bad state string: "{text}"',
        remedy=f"Valid node states are: all,drain,{','.join(NODE_STATES).lower()}",
    )


# --- states ---

_BUSY = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_FREE = frozenset({"IDLE", "PLANNED", "RESERVED"})


def _node_counts(node: Any) -> Counts:
    state = node.shown_state.rstrip(NODE_SIGNS)
    is_busy, is_free = state in _BUSY, state in _FREE
    return Counts(int(is_busy), int(is_free), int(not is_busy and not is_free), 1)


def _cpu_counts(node: Any) -> Counts:
    used, rest = node.allocated_cpus, node.cpus - node.allocated_cpus
    is_usable = node.shown_state.rstrip(NODE_SIGNS) in _BUSY | _FREE
    return Counts(used, rest if is_usable else 0, 0 if is_usable else rest, node.cpus)


def _total(counts: Iterator[Counts]) -> Counts:
    return Counts(*map(sum, zip(*counts, strict=True)))


# --- order ---

_STATE_ORDER = (
    "UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "MIXED", "FUTURE", "RESERVED", "DRAINED", "DRAINING",
    "COMPLETING", "FAIL", "FAILING", "MAINT", "REBOOT", "PLANNED",
)  # fmt: skip
"""Order of states, which is that of Slurm's numbers: flags count more than base states."""


def _sorted(groups: list[NodeGroup], sort: str, places: Mapping[str, int]) -> list[NodeGroup]:
    """Return the groups in the order of --sort. `#` is the order of the configuration."""
    keys: list[tuple[Callable[[NodeGroup], Any], bool]] = []
    for key in sort.split(","):
        letter = key.lstrip("+-#")[:1]
        if letter == "P" and "#" in key:
            keys.append((lambda group: places[group.partition.name], "-" in key))
        elif letter:
            keys.append((partial(_sort_key, letter), "-" in key))
    for by, is_reversed in reversed(keys):
        groups.sort(key=by, reverse=is_reversed)
    return groups


def _sort_key(letter: str, group: NodeGroup) -> tuple[bool, Any]:
    if letter in "tT":
        state = group.state.rstrip(NODE_SIGNS)
        return False, _STATE_ORDER.index(state) if state else -1
    for column in sinfo.COLUMNS.values():
        if column.letter == letter:
            if column.field == "partition":
                return False, str(column.cell(group, Notation()))
            value = getattr(group, column.field)
            return value is None, _natural(value) if isinstance(value, str) else value or 0
    return False, 0


def _natural(name: str) -> list[tuple[str, int]]:
    """Return the sort key of a name: numbers in it count as numbers."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


# --- reservations ---


def _show_reservations(controller: Controller, line: CommandLine) -> int:
    fields = ("name", "is_active", "start", "end", "nodes")
    listing = fetch(controller, "reservations", ReservationLine, fields)
    if not listing.rows:
        from fairbank.report.slurm import scontrol

        print(scontrol.NO_RESERVATIONS)
        return 0
    width = max(9, *(len(row.name) for row in listing.rows))
    form = "{:<{}}  {:>8}  {:>19}  {:>19}  {:>11}  {}"
    if "noheader" not in line.options:
        header = ("STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")
        print(form.format("RESV_NAME", width, *header))
    writes = notation()
    for row in listing.rows:
        start, end = (time(at, writes) for at in (row.start, row.end))
        length = clock(row.end - row.start, writes)
        state = "ACTIVE" if row.is_active else "INACTIVE"
        print(form.format(row.name, width, state, start, end, length, row.nodes or ""))
    return 0
