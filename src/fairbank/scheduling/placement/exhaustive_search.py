"""Complete search for nodes, before a job is said not to fit.

Slurm omits nodes on which few tasks fit, the smallest first, and tries again. It misses a solution
now and then; this search misses none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, combinations
from typing import NamedTuple

import numpy as np

from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts


class NodeSelection(NamedTuple):
    """Number of nodes and tasks, nodes that must be in, and the number of nodes of each kind. No
    node counts for two kinds.
    """

    least: int
    most: int
    tasks: int
    required: NodeSet = node_set.NO_NODES
    kinds: tuple[tuple[NodeSet, int], ...] = ()
    contiguous: bool = False


def can_hold_tasks(among: NodeSet, tasks_per_node: Counts, selection: NodeSelection) -> bool:
    """Return True if the largest nodes hold all tasks, required nodes and kinds left aside."""
    if min(among.bit_count(), selection.most) >= selection.tasks:
        return True  # each has room for one
    sizes = tasks_per_node[node_set.places(among)]
    if len(sizes) > selection.most:
        sizes = np.partition(sizes, len(sizes) - selection.most)[-selection.most :]
    return int(sizes.sum()) >= selection.tasks


def by_size(among: NodeSet, tasks_per_node: Counts, selection: NodeSelection) -> list[int] | None:
    """Return the nodes on which most tasks fit, as few as needed; None if there is no solution.

    Sets of nodes that leave a place for each kind are the independent sets of a matroid. Taking the
    largest node that may still be taken therefore ends with the largest sum that any choice has.
    """
    taken: list[int] = node_set.places(selection.required).tolist()
    chosen, tasks = selection.required, selection.tasks - int(tasks_per_node[taken].sum())
    if not _can_complete_kinds(chosen, among, selection):
        return None
    places = node_set.places(node_set.without(among, selection.required)).tolist()
    for place in sorted(places, key=lambda place: (-int(tasks_per_node[place]), place)):
        missing = _missing(chosen, selection)
        enough = len(taken) >= selection.least and tasks <= 0
        if len(taken) == selection.most or (enough and not missing):
            break
        more = chosen | 1 << place
        if (
            _can_complete_kinds(more, among, selection)
            if not enough
            else _missing(more, selection) < missing
        ):
            chosen = more
            taken.append(place)
            tasks -= int(tasks_per_node[place])
    return (
        taken
        if len(taken) >= selection.least and tasks <= 0 and not _missing(chosen, selection)
        else None
    )


def _missing(chosen: NodeSet, selection: NodeSelection) -> int:
    """Return how many nodes are missing at least so that each kind has its own, by Hall's theorem:
    for the kinds that lack most together.
    """
    worst = 0
    for size in range(1, len(selection.kinds) + 1):
        for subset in combinations(selection.kinds, size):
            together = node_set.NO_NODES
            for nodes, _ in subset:
                together |= nodes
            worst = max(worst, sum(count for _, count in subset) - (chosen & together).bit_count())
    return worst


def _can_complete_kinds(chosen: NodeSet, among: NodeSet, selection: NodeSelection) -> bool:
    """Return True if nodes can be added, up to the maximum, until each kind has its own."""
    if not selection.kinds:
        return chosen.bit_count() <= selection.most
    return (
        not _missing(chosen | among, selection)
        and chosen.bit_count() + _missing(chosen, selection) <= selection.most
    )


def contiguous(
    among: NodeSet, weights: Sequence[NodeSet], tasks_per_node: Counts, selection: NodeSelection
) -> list[int] | None:
    """Return consecutive nodes; None if there is no solution.

    A run of one weight comes first, the lightest weight before others and of these the shortest
    run; then any run.
    """
    if not node_set.has_run(among, selection.least):
        return None
    for nodes in (*weights, among):
        windows = [
            window
            for begin, end in node_set.runs(nodes)
            if (window := _window(begin, end, tasks_per_node, selection))
        ]
        if windows:
            _, begin, end = min(windows)
            return list(range(begin, end))
    return None


def _window(
    begin: int, end: int, tasks_per_node: Counts, selection: NodeSelection
) -> tuple[int, int, int] | None:
    """Return the length of a run and the first stretch of it that is sufficient."""
    sums = [0, *accumulate(tasks_per_node[begin:end].tolist())]
    for first in range(end - begin):
        shortest = max(first + selection.least, bisect_left(sums, sums[first] + selection.tasks))
        longest = min(first + selection.most, end - begin)
        if shortest > longest or not _is_suitable(begin + first, begin + longest, selection):
            continue
        last = next(
            last
            for last in range(shortest, longest + 1)
            if _is_suitable(begin + first, begin + last, selection)
        )
        return end - begin, begin + first, begin + last
    return None


def _is_suitable(begin: int, end: int, selection: NodeSelection) -> bool:
    inside = node_set.between(begin, end)
    return selection.required & inside == selection.required and _missing(inside, selection) == 0
