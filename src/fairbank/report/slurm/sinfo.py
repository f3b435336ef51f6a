"""Columns of sinfo, and its formats. A row is a group of nodes of one partition."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fairbank.report.slurm.layout import SlurmColumn, TableFormat, parse_names, table
from fairbank.report.slurm.machine_rows import PartitionLine
from fairbank.report.slurm.notation import (
    INFINITE,
    NODE_SIGNS,
    NODE_STATES,
    NOT_APPLICABLE,
    REASON_NONE,
    UNKNOWN,
    UNLIMITED,
    EndKept,
    Notation,
    Uncut,
    Writer,
    Written,
    clock,
    else_word,
    shortened,
    time,
)

FORMAT = "Partition:9 ,Available:.5 ,Time:.10 ,Nodes:.6 ,StateCompact:.6 ,NodeList:0"
LONG_FORMAT = (
    "Partition:9 ,Available:.5 ,Time:.10 ,Size:.10 ,Root:.4 ,OverSubscribe:.8 ,Groups:.10 ,"
    "Nodes:.6 ,StateLong:.11 ,Reservation:.11 ,NodeList:0"
)
NODE_FORMAT = "NodeList:0 ,Nodes:.6 ,Partition:.9 ,StateCompact:6"
LONG_NODE_FORMAT = (
    "NodeList:0 ,Nodes:.6 ,Partition:.9 ,StateLong:.11 ,CPUs:4 ,SocketCoreThread:.8 ,Memory:.6 ,"
    "Disk:.8 ,Weight:.6 ,Features:.8 ,Reason:20"
)
SUMMARY_FORMAT = "Partition:9 ,Available:.5 ,Time:.10 ,NodeAIOT:.16 ,NodeList:0"
REASON_FORMAT = "Reason:20 ,User:9 ,TimeStamp:19 ,NodeList:0"
LONG_REASON_FORMAT = "Reason:20 ,UserLong:12 ,TimeStamp:19 ,StateCompact:6 ,NodeList:0"
UNKNOWN_LETTER = "Invalid node format specification: {}"
UNKNOWN_COLUMN = "Invalid job format specification: {}"
"""Errors of sinfo, which goes on without the column."""

_LEAST_WIDTH = 9
"""Of columns whose width follows from the rows."""


class Counts(NamedTuple):
    """Nodes or CPUs of a group."""

    allocated: int = 0
    idle: int = 0
    other: int = 0
    total: int = 0


Range = tuple[int, int]
"""Smallest and largest value of the nodes of a group."""


class NodeGroup(NamedTuple):
    """Nodes of a partition that are shown in one line.

    `state` is that of the line, with its sign; empty for a partition without nodes. `load` is in
    hundredths.
    """

    partition: PartitionLine
    state: str = "IDLE"
    nodes: str = ""
    hosts: str = ""
    addresses: str = ""
    node_counts: Counts = Counts()
    cpu_counts: Counts = Counts()
    cpus: Range = (1, 1)
    sockets: Range = (1, 1)
    cores: Range = (1, 1)
    threads: Range = (1, 1)
    memory: Range = (1, 1)
    tmp: Range = (0, 0)
    weight: Range = (1, 1)
    load: Range | None = None
    free_memory: Range | None = None
    allocated_memory: int = 0
    port: int = 0
    features: str | None = None
    active_features: str | None = None
    gres: str | None = None
    gres_used: str | None = None
    reservation: str = ""
    reason: str = REASON_NONE
    reason_user: str | None = None
    reason_uid: int | None = None
    reason_time: int | None = None
    version: str | None = None
    cluster: str | None = None
    comment: str | None = None
    extra: str | None = None

    @property
    def user_and_uid(self) -> str | None:
        """User who gave the reason, with their number."""
        return None if self.reason_user is None else f"{self.reason_user}({self.reason_uid})"

    @property
    def shape(self) -> tuple[Range, Range, Range]:
        """Sockets, cores and threads."""
        return self.sockets, self.cores, self.threads


def _of(show: Callable[[PartitionLine], Written]) -> Writer:
    """Return the writer of a value of the partition."""
    return lambda partition, notation: show(partition)


def _time_limit(word: str, show: Callable[[PartitionLine], int | None]) -> Writer:
    def write(partition: PartitionLine, notation: Notation) -> str:
        seconds = show(partition)
        return word if seconds is None else clock(seconds, notation)

    return write


def _name(partition: PartitionLine, notation: Notation) -> str:
    return EndKept(f"{partition.name}*") if partition.is_default else partition.name


def _size(partition: PartitionLine, notation: Notation) -> str:
    least = max(partition.min_nodes, 1)
    if partition.max_nodes is None:
        return f"{shortened(least)}-{INFINITE}"
    sizes = [shortened(least), shortened(partition.max_nodes)]
    return sizes[0] if least == partition.max_nodes else "-".join(sizes)


def _counts(*fields: str) -> Writer:
    return lambda counts, notation: "/".join(str(getattr(counts, field)) for field in fields)


_all_counts = _counts("allocated", "idle", "other", "total")


def _least(values: Range, notation: Notation) -> str:
    """Return the smallest value, with + if another node has more."""
    return f"{values[0]}{'+' if values[0] < values[1] else ''}"


def _least_short(values: Range, notation: Notation) -> str:
    return f"{shortened(values[0])}{'+' if values[0] < values[1] else ''}"


def _shape(shape: Iterable[Range], notation: Notation) -> str:
    return ":".join(_least_short(values, notation) for values in shape)


def _range(values: Range, notation: Notation) -> str:
    return "-".join(str(value) for value in dict.fromkeys(values))


def _load(values: Range, notation: Notation) -> str:
    return "-".join(f"{value / 100:.2f}" for value in dict.fromkeys(values))


def _short_state(state: str, notation: Notation) -> str:
    word = state.rstrip(NODE_SIGNS)
    return NODE_STATES[word] + state[len(word) :] if state else "n/a"


def _long_state(state: str, notation: Notation) -> str:
    return state.lower() or "n/a"


_default_time = _time_limit("n/a", lambda at: at.default_time)
_or_unknown, _or_na = else_word(UNKNOWN), else_word(NOT_APPLICABLE)

COLUMNS = table(
    SlurmColumn("AllocMem", "allocated_memory", head="ALLOCMEM"),
    SlurmColumn(
        "AllocNodes", "partition", _of(lambda at: at.submit_hosts or "all"), "ALLOCNODES", "S"
    ),
    SlurmColumn("Available", "partition", _of(lambda at: at.state.lower()), "AVAIL", "a"),
    SlurmColumn("Cluster", "cluster", _or_na, "CLUSTER", "V"),
    SlurmColumn("Comment", "comment", head="COMMENT"),
    SlurmColumn("Cores", "cores", _least_short, "CORES", "Y"),
    SlurmColumn("CPUs", "cpus", _least_short, "CPUS", "c"),
    SlurmColumn("CPUsLoad", "load", else_word(NOT_APPLICABLE, _load), "CPU_LOAD", "O"),
    SlurmColumn("CPUsState", "cpu_counts", _all_counts, "CPUS(A/I/O/T)", "C"),
    SlurmColumn(
        "DefaultTime",
        "partition",
        _time_limit("n/a", lambda at: at.default_time),
        "DEFAULTTIME",
        "L",
    ),
    SlurmColumn("Disk", "tmp", _least, "TMP_DISK", "d"),
    SlurmColumn("Extra", "extra", head="EXTRA"),
    SlurmColumn("Features", "features", head="AVAIL_FEATURES", letter="f"),
    SlurmColumn("features_act", "active_features", head="ACTIVE_FEATURES", letter="b"),
    SlurmColumn("FreeMem", "free_memory", else_word(NOT_APPLICABLE, _range), "FREE_MEM", "e"),
    SlurmColumn("Gres", "gres", head="GRES", letter="G"),
    SlurmColumn("GresUsed", "gres_used", head="GRES_USED", letter="G"),
    SlurmColumn("Groups", "partition", _of(lambda at: at.allowed_groups or "all"), "GROUPS", "g"),
    SlurmColumn(
        "MaxCPUsPerNode",
        "partition",
        _of(lambda at: UNLIMITED if at.max_cpus_per_node is None else at.max_cpus_per_node),
        "MAX_CPUS_PER_NODE",
        "B",
    ),
    SlurmColumn("Memory", "memory", _least, "MEMORY", "m"),
    SlurmColumn("NodeAddr", "addresses", head=Uncut("NODE_ADDR"), letter="o"),
    SlurmColumn("NodeAI", "node_counts", _counts("allocated", "idle"), "NODES(A/I)", "A"),
    SlurmColumn("NodeAIOT", "node_counts", _all_counts, "NODES(A/I/O/T)", "F"),
    SlurmColumn("NodeHost", "hosts", head=Uncut("HOSTNAMES"), letter="n"),
    SlurmColumn("NodeList", "nodes", head=Uncut("NODELIST"), letter="N"),
    SlurmColumn("Nodes", "node_counts", _counts("total"), "NODES", "D"),
    SlurmColumn("OverSubscribe", "partition", _of(lambda at: at.sharing), "OVERSUBSCRIBE", "h"),
    SlurmColumn("Partition", "partition", _name, "PARTITION", "P"),
    SlurmColumn("PartitionName", "partition", _of(lambda at: at.name), "PARTITION", "R"),
    SlurmColumn("Port", "port", head="PORT"),
    SlurmColumn("PreemptMode", "partition", _of(lambda at: at.preempt_mode), "PREEMPT_MODE", "M"),
    SlurmColumn(
        "PriorityJobFactor", "partition", _of(lambda at: at.factor), "PRIO_JOB_FACTOR", "I"
    ),
    SlurmColumn("PriorityTier", "partition", _of(lambda at: at.tier), "PRIO_TIER", "p"),
    SlurmColumn("Reason", "reason", head="REASON", letter="E"),
    SlurmColumn("Reservation", "reservation", head="RESERVATION", letter="i"),
    SlurmColumn("Root", "partition", _of(lambda at: "yes" if at.root_only else "no"), "ROOT", "r"),
    SlurmColumn("Share", "partition", _of(lambda at: at.sharing), "OVERSUBSCRIBE"),
    SlurmColumn("Size", "partition", _size, "JOB_SIZE", "s"),
    SlurmColumn("Sockets", "sockets", _least_short, "SOCKETS", "X"),
    SlurmColumn("SocketCoreThread", "shape", _shape, "S:C:T", "z"),
    SlurmColumn("StateCompact", "state", _short_state, "STATE", "t"),
    SlurmColumn("StateComplete", "state", _long_state, "STATECOMPLETE"),
    SlurmColumn("StateLong", "state", _long_state, "STATE", "T"),
    SlurmColumn("Threads", "threads", _least_short, "THREADS", "Z"),
    SlurmColumn(
        "Time", "partition", _time_limit(INFINITE, lambda at: at.max_time), "TIMELIMIT", "l"
    ),
    SlurmColumn("TimeStamp", "reason_time", time, "TIMESTAMP", "H"),
    SlurmColumn("User", "reason_user", _or_unknown, "USER", "u"),
    SlurmColumn("UserLong", "user_and_uid", _or_unknown, "USER", "U"),
    SlurmColumn("Version", "version", _or_na, "VERSION", "v"),
    SlurmColumn("Weight", "weight", _least, "WEIGHT", "w"),
)
"""By the names that --Format takes in any case."""


def default_format(form: str, groups: Iterable[NodeGroup]) -> TableFormat:
    """Return a format of this module with columns as wide as the longest names of all rows."""
    parsed = parse_names(form, COLUMNS)
    if form in (REASON_FORMAT, LONG_REASON_FORMAT):
        return parsed
    widths = {"Partition": _LEAST_WIDTH}
    if form in (NODE_FORMAT, LONG_NODE_FORMAT):
        widths["NodeList"] = _LEAST_WIDTH
    for group in groups:
        for name, width in widths.items():
            widths[name] = max(width, len(str(COLUMNS[name].cell(group, Notation()))))
    cells = (
        cell._replace(width=widths[name] if cell.width > 0 else -widths[name])
        if cell.column and (name := cell.column.name) in widths
        else cell
        for cell in parsed.cells
    )
    return parsed._replace(cells=tuple(cells))
