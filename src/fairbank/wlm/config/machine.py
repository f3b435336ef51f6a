"""Nodes and partitions from their records, with the DEFAULT records before them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import compress
from fairbank.wlm.config.entries import FileEntry, Record, Report, invalid, read_values
from fairbank.wlm.config.keyword import ASSOCIATIONS, NAMES, NODES, PARTITIONS
from fairbank.wlm.core.settings import SchedulingSettings

NODES_MAX = 65_536
"""Maximum number of nodes, as in Slurm."""

_NAME_FIELDS = {ASSOCIATIONS: "account"}


class Item(NamedTuple):
    """Values of a record by field, with those of DEFAULT records that it does not have itself.

    `entries` are its own, by field.
    """

    record: Record
    values: dict[str, Any]
    entries: dict[str, FileEntry]

    @property
    def name(self) -> Any:
        """Its name; of nodes their names."""
        return self.values[_NAME_FIELDS.get(self.record.group, "name")]

    def error(self, message: str, remedy: str | None, field: str = "") -> InvalidInput:
        """Return the error for an entry of this item; without a field for its name."""
        entry = self.entries.get(field) or self.record.entries[0]
        return entry.error(message, remedy)


def read_items(records: Iterable[Record], report: Report) -> Iterator[Item]:
    """Yield the items of one group.

    A DEFAULT record holds for the records after it, field by field, until another one.

    Raises:
        InvalidInput: a value is not accepted, a keyword is there twice, or a name is missing.
    """
    defaults: dict[str, Any] = {}
    for record in records:
        values, entries = read_values(record.entries, report)
        name = NAMES[record.group]
        first = _NAME_FIELDS.get(record.group, "name")
        if first not in entries:
            key = record.entries[0].written if record.entries else name
            raise invalid(record.place, f"{name} is missing", field=key, remedy=f"add {name}")
        if entries[first].text.upper() == "DEFAULT" and record.group in (NODES, PARTITIONS):
            del values[first]
            defaults |= values
        else:
            yield Item(record, defaults | values, entries)


def build_nodes(items: Iterable[Item], *, by_core: bool) -> tuple[Node, ...]:
    """Return the nodes.

    Args:
        items: items of NodeName records.
        by_core: jobs get whole cores; else each CPU counts as one.

    Raises:
        InvalidInput: a node is there twice, or its figures contradict each other.
    """
    nodes: dict[str, Node] = {}
    places: dict[str, str] = {}
    for item in items:
        names = item.name
        fields = _node_fields(item)
        if not by_core:
            fields["threads"] = 1
        if len(nodes) + len(names) > NODES_MAX:
            raise item.error(f"more than {NODES_MAX} nodes", "configure fewer")
        for name in names:
            if name in nodes:
                first = places[name]
                raise item.error(f"{name} is there twice, first in {first}", "name it once")
            places[name] = item.record.place
            try:
                nodes[name] = Node(name=name, **fields)
            except InvalidInput as bad:
                field = (bad.field or "").removeprefix(f"{name}.")
                raise item.error(bad.message, bad.remedy, field) from bad
    return tuple(nodes.values())


def _node_fields(item: Item) -> dict[str, Any]:
    """Return the fields of `Node`, with the CPUs that follow from sockets, cores and threads."""
    fields = {field: value for field, value in item.values.items() if field != "name"}
    boards, per_board = fields.pop("boards", 1), fields.pop("sockets_per_board", None)
    sockets, cores = fields.pop("sockets", None), fields.pop("cores", None)
    if sockets is None and per_board is not None:
        sockets = boards * per_board
    fields["sockets"] = sockets or 1
    core_count, threads = (sockets or 1) * (cores or 1), fields.get("threads", 1)
    cpus = fields.setdefault("cpus", core_count * threads)
    if sockets is None and cores is None:
        fields["threads"] = min(threads, cpus)
    elif cpus == core_count:
        fields["threads"] = 1  # Slurm, too, then gives out one thread of each core
    elif cpus != core_count * threads:
        what = f"{cpus} CPUs are not {core_count} cores with {threads} CPUs each"
        raise item.error(what, f"CPUs={core_count * threads}", "cpus")
    return fields


def build_partitions(
    items: Iterable[Item], nodes: Iterable[Node], scheduling: SchedulingSettings
) -> tuple[PartitionRules, ...]:
    """Return the partitions.

    Args:
        items: items of PartitionName records.
        nodes: all nodes.
        scheduling: settings with the memory of partitions that have none of their own.

    Raises:
        InvalidInput: a partition is there twice, has no or unknown nodes, or contradicts itself.
    """
    known = {node.name for node in nodes}
    partitions: dict[str, PartitionRules] = {}
    default: PartitionRules | None = None
    for item in items:
        fields = _partition_fields(item, scheduling)
        missing = [name for name in fields["nodes"] if name not in known]
        if missing:
            what = f"there is no node {compress(missing)[:200]}"
            raise item.error(what, f"configure it with {NAMES[NODES]}", "nodes")
        try:
            rules = PartitionRules(**fields)
        except InvalidInput as bad:
            field = (bad.field or "").rpartition(".")[2]
            raise item.error(bad.message, bad.remedy, field) from bad
        if rules.name in partitions:
            raise item.error(f"{rules.name} is there twice", "name it once")
        if rules.is_default and default is not None:
            what = f"{default.name} is the default partition already"
            raise item.error(what, "give one partition Default=YES", "is_default")
        default = rules if rules.is_default else default
        partitions[rules.name] = rules
    return tuple(partitions.values())


def _partition_fields(item: Item, scheduling: SchedulingSettings) -> dict[str, Any]:
    fields = dict(item.values)
    if "nodes" not in fields:
        raise item.error("Nodes is missing", "add Nodes=ALL, or a list such as n[01-10]")
    if fields.get("memory_per_cpu") is None and fields.get("memory_per_node") is None:
        fields["memory_per_cpu"] = scheduling.memory_per_cpu
        fields["memory_per_node"] = scheduling.memory_per_node
    for field in ("max_memory_per_cpu", "max_memory_per_node"):
        fields.setdefault(field, getattr(scheduling, field))
    return fields
