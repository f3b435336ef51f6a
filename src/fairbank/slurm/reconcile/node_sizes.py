"""Node sizes and default memory of Slurm's partitions, as settings of the bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.partition import Cluster, Partition
from fairbank.core.gres import gres_texts, most_gres
from fairbank.core.settings_file import toml_string
from fairbank.slurm.parsers.values import SlurmPartition

if TYPE_CHECKING:
    from fairbank.slurm.reconcile.prices import SlurmMachine


def largest_node(machine: SlurmMachine, partition: str) -> NodeSize | None:
    """Return the most CPUs, memory and GRES of a node of the partition; None without nodes.

    If its nodes differ, a quote of so many whole nodes is then no less than their price.
    """
    sizes = _sizes(machine, partition)
    if not sizes:
        return None
    kinds = _kinds([size.gres or {} for size in sizes])
    return NodeSize(
        max(size.cpus or 0 for size in sizes),
        max(size.memory or 0 for size in sizes),
        most_gres(kinds),
        kinds if len(kinds) > 1 else (),
    )


def _kinds(nodes: Sequence[Mapping[str, int]]) -> tuple[Mapping[str, int], ...]:
    """Return the GRES of each kind of node, without those that others have too, and more."""
    different = [gres for place, gres in enumerate(nodes) if gres not in nodes[:place]]
    return tuple(
        gres
        for gres in different
        if not any(
            other is not gres and all(other.get(name, 0) >= gres[name] for name in gres)
            for other in different
        )
    )


def node_differences(machine: SlurmMachine, partition: str) -> str | None:
    """Return how the nodes of the partition differ, the most frequent size first; None if not."""
    counts = Counter(_in_words(size) for size in _sizes(machine, partition))
    if len(counts) < 2:
        return None
    return "; ".join(f"{number} with {size}" for size, number in counts.most_common())


def size_settings(machine: SlurmMachine, partition: SlurmPartition) -> Iterator[str]:
    """Yield the lines of the bank's settings for the nodes and the default memory."""
    size = largest_node(machine, partition.name)
    if size is not None:
        if differences := node_differences(machine, partition.name):
            yield f"# its nodes differ: {differences}; these are the largest figures"
        yield f"node_cpus = {size.cpus}"
        yield f"node_memory = {size.memory}    # MiB"
        yield f"node_gres = {_gres_value(size)}"
    if (memory := _default_memory(machine, partition)) is not None:
        yield f"{_with_value(memory)}    # MiB"
    if partition.exclusive and size is None:  # the bank refuses the setting without a size
        yield (
            "# exclusive = true    # OverSubscribe=EXCLUSIVE: each job takes whole nodes."
            " Slurm shows no node of this partition; until this is set, together with node_cpus and"
            " node_gres, quotes count only what jobs request"
        )
    elif partition.exclusive:
        yield "exclusive = true    # OverSubscribe=EXCLUSIVE"


def default_partition(partitions: Sequence[SlurmPartition]) -> str | None:
    """Return the name of Slurm's default partition, or None."""
    return next((partition.name for partition in partitions if partition.is_default), None)


def size_differences(machine: SlurmMachine, known: Cluster) -> Iterator[str]:
    """Describe each size or default memory that the bank's settings lack or have otherwise, and
    another default partition.
    """
    for partition in machine.partitions:
        bank_partition = known.partitions.get(partition.name)
        if bank_partition is not None:
            for setting, right, ours in _compared(machine, partition, bank_partition):
                if right != ours:
                    has = "lack it" if ours is None else f"have {ours}"
                    yield (
                        f"partition {partition.name}: {setting} is {right} at Slurm, and the bank's"
                        f" settings {has}"
                    )
    default = default_partition(machine.partitions)
    if known.default_partition not in (None, default):  # none if jobs must name one
        yield (
            f"default_partition is {default} at Slurm, and the bank's settings have"
            f" {known.default_partition}"
        )


def _compared(
    machine: SlurmMachine, partition: SlurmPartition, bank_partition: Partition
) -> Iterator[tuple[str, str, str | None]]:
    """Yield each setting with its value at Slurm and that of the bank's settings, None if missing.

    Where Slurm has no default memory the bank may have one: the submission policy gives it to jobs.
    """
    ours, size = bank_partition.size, largest_node(machine, partition.name)
    if size is not None:
        for setting, right, own in (
            ("node_cpus", size.cpus, ours.cpus),
            ("node_memory", size.memory, ours.memory),
        ):
            yield setting, str(right), None if own is None else str(own)
        if ours.gres is None or _kind_set(ours) != _kind_set(size):
            yield "node_gres", _gres_value(size), None if ours.gres is None else _gres_value(ours)
    memory, own_memory = _default_memory(machine, partition), bank_partition.default_memory
    if memory is not None and (memory.mebibytes or own_memory is None):
        has = None if own_memory is None else _with_value(own_memory)
        yield "default memory", _with_value(memory), has
    if partition.exclusive or bank_partition.exclusive:
        at_slurm = "true" if partition.exclusive else "false"
        yield "exclusive", at_slurm, "true" if bank_partition.exclusive else None


def _sizes(machine: SlurmMachine, partition: str) -> list[NodeSize]:
    return [node.size for node in machine.nodes if partition in node.partitions]


def _kind_set(size: NodeSize) -> frozenset[frozenset[tuple[str, int]]]:
    """Return the kinds in no order, which settings may write in any; one if the nodes are equal."""
    return frozenset(frozenset(gres.items()) for gres in _kinds(size.kinds or (size.gres or {},)))


def _gres_value(size: NodeSize) -> str:
    """Return the value of `node_gres`: a text, or a list if nodes differ in their types."""
    kinds = size.kinds or (size.gres or {},)
    texts = [toml_string(text) for gres in kinds for text in gres_texts(gres)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _in_words(size: NodeSize) -> str:
    gres = ",".join(gres_texts(size.gres or {}))
    return f"{size.cpus} CPUs, {size.memory} MiB{f', {gres}' if gres else ''}"


def _default_memory(machine: SlurmMachine, partition: SlurmPartition) -> Memory | None:
    return partition.default_memory or machine.default_memory


def _with_value(memory: Memory) -> str:
    """Return the setting of a default memory."""
    unit = "cpu" if memory.unit is MemoryUnit.CPU else "node"
    return f"def_mem_per_{unit} = {memory.mebibytes}"
