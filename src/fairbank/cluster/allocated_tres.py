"""TRES that Slurm allocates to a job as its options describe it: whole nodes, default memory.

docs/reference/slurm-rules.md, "Whole nodes and memory", has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.core.tres import BY_CPU, Counts, billing
from fairbank.core.units import exact_decimal

if TYPE_CHECKING:
    from fairbank.cluster.job import JobRequest
    from fairbank.cluster.partition import Partition


class MemoryUnit(Enum):
    """Unit of a job for which memory is requested."""

    NODE = "node"
    CPU = "cpu"
    GPU = "gpu"


class Memory(msgspec.Struct, frozen=True):
    """Memory for each node, CPU or GPU, in MiB; 0: all memory of the nodes."""

    mebibytes: int
    unit: MemoryUnit = MemoryUnit.NODE


class NodeSize(msgspec.Struct, frozen=True):
    """Size of each node of a partition, as far as the settings have it; None: unknown.

    Memory is in MiB. `gres` counts generic resources by TRES, without and with their types. If the
    nodes differ, each number is the most on one node, and `kinds` has the GRES of each kind of
    node; empty if they are unknown or do not differ. `least_cpus` are those of the smallest node,
    for a price that is the least; None: as `cpus`.
    """

    cpus: int | None = None
    memory: int | None = None
    gres: Mapping[str, int] | None = None
    kinds: tuple[Mapping[str, int], ...] = ()
    least_cpus: int | None = None


PER_TASK = "--cpus-per-task", "--gpus-per-task"
"""Options of node requests that each task makes: those of several tasks add up on a node."""

_MEMORY_FIELDS = {
    MemoryUnit.NODE: "mem",
    MemoryUnit.CPU: "mem_per_cpu",
    MemoryUnit.GPU: "mem_per_gpu",
}
_TRES_OF_UNITS = {MemoryUnit.NODE: "node", MemoryUnit.CPU: "cpu", MemoryUnit.GPU: "gres/gpu"}


def allocated_tres(job: JobRequest, partition: Partition) -> dict[str, Fraction]:
    """Return the TRES that the job gets in a partition.

    Memory that is unknown and costs nothing there is left out, and so is unknown default memory.
    Whole nodes that may differ in their GRES are those with the highest price.

    Raises:
        InvalidInput: the price depends on a size of the nodes that the settings lack.
    """
    if not (job.exclusive or partition.exclusive):
        return _allocated(job, partition)
    kinds = [_of_kind(partition, gres) for gres in partition.size.kinds]
    on_any_number = msgspec.structs.replace(job, max_nodes=None)
    able = [kind for kind in kinds if reason_unfit(on_any_number, kind) is None]
    fit = [kind for kind in able if reason_unfit(job, kind) is None]
    shared = [kind for kind in able if kind not in fit and _can_share(job, kind, partition.size)]
    # If a job may lie on nodes of several kinds, the largest figures are the most that it can get.
    places = fit if fit and not shared else [*fit, partition]
    weights, rule = partition.weights, partition.billing_rule
    choices = [_allocated(job, place) for place in places]
    return max(choices, key=lambda counts: billing(counts, weights, rule))


def _can_share(job: JobRequest, kind: Partition, largest: NodeSize) -> bool:
    """Return True if the others of the job's nodes, as large as any, can have the GRES that a node
    of this kind lacks.
    """
    others = (job.max_nodes or 1) - 1
    has = kind.size.gres or {}
    return all(
        job.counts.get(name, 0) <= has.get(name, 0) + others * most
        for name, most in (largest.gres or {}).items()
    )


def _of_kind(partition: Partition, gres: Mapping[str, int]) -> Partition:
    """Return the partition as if it only had nodes with these GRES."""
    size = NodeSize(partition.size.cpus, partition.size.memory, gres)
    return msgspec.structs.replace(partition, size=size)


def _allocated(job: JobRequest, partition: Partition) -> dict[str, Fraction]:
    """Return the TRES that the job gets on nodes that do not differ."""
    counts = dict(job.counts)
    counts["node"] = Fraction(needed_nodes(job, partition.size))
    counts |= count_only_types(counts, partition.size.gres or {})
    if job.exclusive or partition.exclusive:
        counts |= _whole_nodes(job, partition, counts)
    memory = job.memory
    if memory is None and counts.get("mem") == 0:
        memory = Memory(0)
    if memory is not None:
        counts |= _memory(job, partition, memory, counts)
    elif "mem" not in counts:
        counts |= _default_memory(partition, counts)
    return counts


def needed_nodes(job: JobRequest, size: NodeSize) -> int:
    """Return the nodes, more than requested if so few do not have the CPUs and GRES."""
    counts = job.counts
    nodes = max(int(counts.get("node", 1)), 1)
    if size.cpus:
        nodes = max(nodes, ceil(counts["cpu"] / size.cpus))
    for name, per_node in (size.gres or {}).items():
        # A node that must have more is larger than `size`, which may be that of the smallest.
        of_node = max(
            [Fraction(per_node), *(one.get(name, 0) for one in job.node_requests.values())]
        )
        if of_node:
            nodes = max(nodes, ceil(counts.get(name, 0) / of_node))
    for option in PER_TASK:
        for name, per_task in job.node_requests.get(option, {}).items():
            # A task lies on one node, so that the rest of a node may be too small for another one.
            tasks_of_node = int((_on_each_node(size, name) or 0) / per_task) if per_task else 0
            if tasks_of_node and name in counts:
                nodes = max(nodes, ceil(counts[name] / per_task / tasks_of_node))
    return nodes


def count_only_types(counts: Counts, gres: Mapping[str, int]) -> dict[str, Fraction]:
    """Return the counts by type of GRES requested without one, where the nodes have only one."""
    counts_by_type = {}
    for base in [name for name in gres if counts.get(name, 0) > 0 and ":" not in name]:
        types = [name for name in gres if name.startswith(f"{base}:")]
        is_typed = any(name.startswith(f"{base}:") and counts[name] for name in counts)
        if len(types) == 1 and gres[types[0]] == gres[base] and not is_typed:
            counts_by_type[types[0]] = counts[base]
    return counts_by_type


def _whole_nodes(job: JobRequest, partition: Partition, counts: Counts) -> dict[str, Fraction]:
    """Return all CPUs and GRES of the nodes."""
    size = partition.size  # which the settings have for partitions of whole nodes
    if size.cpus is None:
        raise _unknown_size(job, "exclusive", "node_cpus")
    if size.gres is None and any(name.startswith("gres/") for name in partition.weights or ()):
        raise _unknown_size(job, "exclusive", "node_gres")
    cpus = max(counts["node"] * (size.least_cpus or size.cpus), counts["cpu"])
    return {"cpu": cpus, **_whole_gres(counts, size.gres or {})}


def _whole_gres(counts: Counts, gres: Mapping[str, int]) -> dict[str, Fraction]:
    """Return the most GRES of the nodes, at least those that are requested.

    Where nodes differ in their types, those of the requested type leave less for the other types.
    """
    most, nodes = {}, counts["node"]
    for name, per_node in gres.items():
        base, _, kind = name.partition(":")
        other_types = [other for other in counts if other.startswith(f"{base}:") and other != name]
        # GPUs of a type that `gres` has fewer of, as of the smallest node, are on other nodes.
        taken = sum(min(counts[other], nodes * gres.get(other, 0)) for other in other_types)
        if (left := nodes * gres[base] - (taken if kind else 0)) > 0:
            most[name] = max(min(nodes * per_node, left), counts.get(name, Fraction(0)))
    return most


def _memory(
    job: JobRequest, partition: Partition, memory: Memory, counts: Counts
) -> dict[str, Fraction]:
    total = _total(memory, partition.size, counts)
    if total is not None:
        return {"mem": total}
    if "mem" in (partition.weights or BY_CPU):
        raise _unknown_size(job, _MEMORY_FIELDS[memory.unit], "node_memory")
    return {"mem": Fraction(0)}


def _default_memory(partition: Partition, counts: Counts) -> dict[str, Fraction]:
    default = partition.default_memory
    total = None if default is None else _total(default, partition.size, counts)
    return {} if total is None else {"mem": total}


def _total(memory: Memory, size: NodeSize, counts: Counts) -> Fraction | None:
    """Return the memory of the whole job in MiB; None if it is all of nodes of unknown size."""
    if memory.mebibytes == 0:
        return None if size.memory is None else counts["node"] * size.memory
    return memory.mebibytes * counts.get(_TRES_OF_UNITS[memory.unit], Fraction(0))


def _unknown_size(job: JobRequest, field: str, setting: str) -> InvalidInput:
    is_whole = field == "exclusive"
    what = "--exclusive takes whole nodes" if is_whole else "0 is all memory of a node"
    return InvalidInput(
        f"{what}, and the bank's settings lack the size of the nodes of partition {job.partition}",
        field=field,
        remedy=f"staff set clusters.{job.cluster}.partitions.{job.partition}.{setting}; until then"
        f" describe what the job will hold{' without --exclusive' if is_whole else ''}:"
        " --tres cpu=64,mem=256G",
    )


def reason_unfit(job: JobRequest, partition: Partition) -> str | None:
    """Return why the nodes of the partition cannot run the job, as far as their size is known; None
    if they may.
    """
    size, name = partition.size, partition.name
    for option, requested in _node_requests(job):
        # The type first: it says more than the number of all types.
        for tres in sorted(requested, key=len, reverse=True):
            has = _on_each_node(size, tres)
            if has is not None and requested[tres] > has:
                if not has:
                    return f"{option} asks for {tres}, and the nodes of partition {name} have none"
                return (
                    f"{option} asks for {_in_words(tres, requested[tres])} on one node, and a node"
                    f" of partition {name} has {_in_words(tres, has)}"
                )
    for tres, number in job.counts.items():
        if tres.startswith("gres/") and number > 0 and _on_each_node(size, tres) == 0:
            return f"the job asks for {tres}, and the nodes of partition {name} have none"
    nodes = needed_nodes(job, size)
    if job.max_nodes is not None and nodes > job.max_nodes:
        sizes = [_in_words("cpu", size.cpus)] if size.cpus else []
        sizes += [_in_words(tres, number) for tres, number in (size.gres or {}).items()]
        return (
            f"--nodes allows {job.max_nodes}, and the job needs {nodes} nodes of partition {name}"
            + (f", each with {', '.join(sizes)}" if sizes else "")
        )
    return None


def _node_requests(job: JobRequest) -> Iterator[tuple[str, Counts]]:
    """Yield the options with what each requests of a single node, the memory among them."""
    yield from job.node_requests.items()
    if job.memory is not None:
        # With the CPUs or GPUs of a node goes their memory.
        tres = _TRES_OF_UNITS[job.memory.unit]
        counts = [counts.get(tres, Fraction(1)) for counts in job.node_requests.values()]
        least = max([Fraction(1), *counts])
        field = _MEMORY_FIELDS[job.memory.unit]
        yield f"--{field.replace('_', '-')}", {"mem": job.memory.mebibytes * least}


def _on_each_node(size: NodeSize, tres: str) -> int | None:
    """Return how much of a TRES a node has; None if the settings lack it."""
    if tres in ("cpu", "mem"):
        return size.cpus if tres == "cpu" else size.memory
    if size.gres is None or not tres.startswith("gres/"):
        return None
    base = tres.partition(":")[0]
    has_types = any(name.startswith(f"{base}:") for name in size.gres)
    return size.gres.get(tres if has_types else base, 0)  # settings may leave out the types


def _in_words(tres: str, number: Fraction | int) -> str:
    if tres == "mem":
        return f"{exact_decimal(round(Fraction(number) / 1024, 3))} GiB"
    return f"{number} {'CPUs' if tres == 'cpu' else tres}"
