"""Layout of the tasks of a step on its nodes: which ranks each node has."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fairbank.wlm.core.steps.step import StepRequest


def task_counts(fitting: Sequence[int], tasks: int) -> list[int]:
    """Return the number of tasks on each node: they go round the nodes that have free cores.

    When none has any more, they go round all of them.

    Args:
        fitting: how many tasks fit on each node.
        tasks: number of all tasks.
    """
    counts = [0] * len(fitting)
    left = tasks
    while left > 0:
        open_nodes = [at for at, count in enumerate(counts) if count < fitting[at]]
        for at in (open_nodes or range(len(counts)))[:left]:
            counts[at] += 1
            left -= 1
    return counts


def lay_out(
    request: StepRequest, nodes: Sequence[str], fitting: Sequence[int], tasks: int
) -> list[tuple[int, ...]]:
    """Return the ranks on each node, ascending.

    block: neighbours on one node; cyclic: one after the other round the nodes; plane: so many at a
    time; arbitrary: as the nodes are named.
    """
    ranks: list[list[int]] = [[] for _ in nodes]
    match request.distribution:
        case "arbitrary":
            for rank in range(tasks):
                ranks[nodes.index(request.named[rank % len(request.named)])].append(rank)
        case "plane":
            _round(ranks, fitting, tasks, request.plane)
        case "cyclic":
            _round(ranks, fitting, tasks, 1)
        case "block":
            begin = 0
            for at, count in enumerate(task_counts(fitting, tasks)):
                ranks[at] += range(begin, begin + count)
                begin += count
    return [tuple(own) for own in ranks]


def _round(ranks: list[list[int]], fitting: Collection[int], tasks: int, together: int) -> None:
    """Deal the tasks round the nodes, some at a time, while they have free cores; then anyhow.

    Each node gets one if there are enough.
    """
    rank, limits = 0, list(fitting)
    while rank < tasks:
        before = rank
        for at, (own, limit) in enumerate(zip(ranks, limits, strict=True)):
            empty = sum(1 for other in ranks[at + 1 :] if not other)
            count = min(together, limit - len(own), max(tasks - rank - empty, 1), tasks - rank)
            own += range(rank, rank + max(count, 0))
            rank += max(count, 0)
        if rank == before:
            limits = [tasks] * len(limits)
