"""Bindings: the numbers of the cores and GPUs that a job has, of which its placement has counts.

A job gets whole cores and GPUs. They are adjacent where possible, so that its processes share
caches and links, and otherwise the lowest ones. Next user: the embedded workload manager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.cluster.node import Gpus, Node
from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import NodeTable


class NodeBinding(NamedTuple):
    """Cores and GPUs of one node that a job has, by their numbers from 0.

    GPUs are numbered in the order of `Node.gpus`. `rows`: number of jobs that may have the cores at
    the same time; 1: the job has them for itself.
    """

    node: str
    cores: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    rows: int = 1


def bind(
    cluster: NodeTable, placement: Placement, held: Mapping[str, Sequence[NodeBinding]]
) -> tuple[NodeBinding, ...] | None:
    """Return the bindings of a job that starts, in the order of its shares.

    A job that shares cores gets those with the fewest jobs.

    Args:
        cluster: nodes and partitions.
        held: bindings of the running jobs, by the name of the node. Their order does not matter.

    Returns:
        None if a core or GPU would have more jobs than it may have. With a placement that fits,
        that happens only to jobs that share cores: `FreeResources` counts the jobs of all cores of
        a node together, so that a core with few jobs makes up for one with many.
    """
    rows = cluster.rules[placement.partition].rows if placement.sharing else 1
    bindings: list[NodeBinding] = []
    for share in placement.shares:
        node = cluster.nodes[share.place]
        others = held.get(node.name, ())
        cores = _select_cores(node, -(-share.cpus // node.threads), others, rows)
        gpus = _select_gpus(node, share.gpus, others)
        if cores is None or gpus is None:
            return None
        bindings.append(NodeBinding(node.name, cores, gpus, rows))
    return tuple(bindings)


def _select_cores(
    node: Node, count: int, held: Sequence[NodeBinding], rows: int
) -> tuple[int, ...] | None:
    """Return the cores of a job; of those that it may share only as many jobs' as needed."""
    jobs = Counter(core for binding in held for core in binding.cores)
    # A core may have as many jobs as each of its jobs allows.
    full = {core for binding in held for core in binding.cores if jobs[core] >= binding.rows}
    by_jobs: dict[int, NodeSet] = {}
    for core in range(node.cores):
        if core not in full and jobs[core] < rows:
            by_jobs[jobs[core]] = by_jobs.get(jobs[core], node_set.NO_NODES) | 1 << core
    usable = node_set.NO_NODES
    for _, cores in sorted(by_jobs.items()):
        usable |= cores
        if usable.bit_count() >= count:
            return _adjacent(usable, count)
    return None


def _select_gpus(
    node: Node, granted: Sequence[Gpus], held: Sequence[NodeBinding]
) -> tuple[int, ...] | None:
    taken = node_set.of(number for binding in held for number in binding.gpus)
    counts = dict(granted)
    numbers: list[int] = []
    end = 0
    for kind, total in node.gpus:
        begin, end = end, end + total
        free = node_set.without(node_set.between(begin, end), taken)
        count = counts.pop(kind, 0)
        if free.bit_count() < count:
            return None
        numbers += _adjacent(free, count)
    return None if counts else tuple(numbers)


def _adjacent(some: NodeSet, count: int) -> tuple[int, ...]:
    """Return the first `count` adjacent numbers of a set; if there are none, the lowest."""
    starts = node_set.run_starts(some, count)
    if not starts:
        return tuple(node_set.each(node_set.first(some, count)))
    begin = next(node_set.each(starts))
    return tuple(range(begin, begin + count))
