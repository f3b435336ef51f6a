"""Selection of nodes among those that are sufficient (slurm-rules.md, "Node selection").

The lightest nodes come first. Of these, runs of consecutive nodes are used whole, so that few runs
are broken, and no more nodes than needed. A complete search follows before a job is said not to
fit. Slurm omits nodes on which few tasks fit, the smallest first, and tries again. It misses a
solution now and then; the complete search misses none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, combinations
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


def _can_hold_tasks(among: NodeSet, tasks_per_node: Counts, selection: NodeSelection) -> bool:
    """Return True if the largest nodes hold all tasks, required nodes and kinds left aside."""
    if min(among.bit_count(), selection.most) >= selection.tasks:
        return True  # each can hold one
    sizes = tasks_per_node[node_set.places(among)]
    if len(sizes) > selection.most:
        sizes = np.partition(sizes, len(sizes) - selection.most)[-selection.most :]
    return int(sizes.sum()) >= selection.tasks


def _by_size(among: NodeSet, tasks_per_node: Counts, selection: NodeSelection) -> list[int] | None:
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
    if len(taken) >= selection.least and tasks <= 0 and not _missing(chosen, selection):
        return taken
    return None


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


def _contiguous(
    among: NodeSet, weights: Sequence[NodeSet], tasks_per_node: Counts, selection: NodeSelection
) -> list[int] | None:
    """Return consecutive nodes; None if there is no solution.

    A run of one weight comes first, the lightest weight before others and of these the shortest
    run; then any run.
    """
    if not node_set.run_starts(among, selection.least):
        return None
    for nodes in (*weights, among):
        runs = node_set.runs(nodes)
        windows = [
            window
            for window in (_window(begin, end, tasks_per_node, selection) for begin, end in runs)
            if window
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


def select_nodes(
    among: NodeSet, by_weight: Sequence[NodeSet], tasks_per_node: Counts, selection: NodeSelection
) -> list[int] | None:
    """Return the places of the nodes in the order in which they get tasks; None if there is no
    solution.

    Args:
        among: free nodes.
        by_weight: nodes of each weight, the lightest first.
        tasks_per_node: number of tasks that fit on each node.
        selection: number of nodes and tasks, required nodes and kinds.
    """
    if selection.required & among != selection.required or among.bit_count() < selection.least:
        return None
    lightest: NodeSet = node_set.NO_NODES
    weights: list[NodeSet] = []
    for nodes in by_weight:
        if nodes & among:
            weights.append(nodes & among)
            lightest |= weights[-1]
            if (
                lightest.bit_count() < selection.least
                or (selection.required & lightest) != selection.required
            ):
                continue
            if (places := _select_among(lightest, weights, tasks_per_node, selection)) is not None:
                return places
    return None


def _select_among(
    among: NodeSet, weights: Sequence[NodeSet], tasks_per_node: Counts, selection: NodeSelection
) -> list[int] | None:
    if selection.contiguous:
        return _contiguous(among, weights, tasks_per_node, selection)
    if not _can_hold_tasks(among, tasks_per_node, selection):
        return None
    required = selection.required
    for kind, count in selection.kinds:
        picked = node_set.first(node_set.without(among & kind, required), count)
        if picked.bit_count() < count:
            return _by_size(among, tasks_per_node, selection)
        required |= picked
    if (
        required.bit_count() <= selection.most
        and (
            places := _by_runs(
                among, weights, tasks_per_node, selection._replace(required=required)
            )
        )
        is not None
    ):
        return places
    return _by_size(among, tasks_per_node, selection)


class _ChosenNodes:
    """Nodes chosen so far, and what is still needed."""

    def __init__(self, tasks_per_node: Counts, selection: NodeSelection) -> None:
        self.tasks_per_node = tasks_per_node
        self.taken: list[int] = node_set.places(selection.required).tolist()
        self.nodes = selection.least - len(self.taken)
        self.tasks = selection.tasks - int(tasks_per_node[self.taken].sum())
        self.most = selection.most - len(self.taken)

    @property
    def is_complete(self) -> bool:
        """Return True if nothing more is needed."""
        return self.nodes <= 0 and self.tasks <= 0

    def take(self, places: Iterable[int]) -> None:
        """Take nodes one after the other, as long as they are needed."""
        for place in places:
            if self.is_complete or self.most <= 0:
                return
            self.taken.append(place)
            self.nodes, self.most = self.nodes - 1, self.most - 1
            self.tasks -= int(self.tasks_per_node[place])

    def take_run(self, begin: int, end: int, tasks: int) -> None:
        """Take all nodes of a run that holds so many tasks, as long as they are needed."""
        if self.most >= end - begin and (self.nodes >= end - begin or self.tasks >= tasks):
            self.taken.extend(range(begin, end))
            self.nodes, self.most, self.tasks = (
                self.nodes - (end - begin),
                self.most - (end - begin),
                self.tasks - tasks,
            )
        else:
            self.take(range(begin, end))


def _by_runs(
    among: NodeSet, weights: Sequence[NodeSet], tasks_per_node: Counts, selection: NodeSelection
) -> list[int] | None:
    """Return nodes of runs, of required nodes first, then the lightest, until all tasks fit."""
    chosen = _ChosenNodes(tasks_per_node, selection)
    if selection.required:
        for nodes in weights:
            _take_neighbours(chosen, nodes & among, selection.required)
        among = node_set.without(among, node_set.of(chosen.taken))
    for nodes in weights:
        if chosen.is_complete or chosen.most <= 0:
            break
        _take_runs(chosen, nodes & among)
    return chosen.taken if chosen.is_complete else None


def _take_neighbours(chosen: _ChosenNodes, among: NodeSet, required: NodeSet) -> None:
    """Take neighbours of required nodes within each run: first upwards, then downwards."""
    for begin, end in node_set.runs(among | required):
        if beside := required & node_set.between(begin, end):
            middle = next(node_set.each(beside))
            outward = chain(range(middle, end), range(middle - 1, begin - 1, -1))
            chosen.take(place for place in outward if not beside >> place & 1)


def _tightest(chosen: _ChosenNodes, begin: int, end: int) -> int | None:
    """Return the tightest node of a run that holds all remaining tasks alone, or None."""
    tasks = chosen.tasks_per_node[begin:end]
    enough = np.flatnonzero(tasks >= max(chosen.tasks, 1))
    return begin + int(enough[np.argmin(tasks[enough])]) if len(enough) else None


def _take_runs(chosen: _ChosenNodes, among: NodeSet) -> None:
    """Take the tightest run that is sufficient alone; as long as there is none, the largest."""
    edges = node_set.edges(among)
    if not len(edges):
        return
    cuts = edges.ravel()
    tasks = np.add.reduceat(
        chosen.tasks_per_node, cuts if cuts[-1] < len(chosen.tasks_per_node) else cuts[:-1]
    )[::2]
    length = edges[:, 1] - edges[:, 0]
    longest = int(length.max())
    for largest in np.argsort(-tasks, kind="stable").tolist():
        best = largest
        if tasks[largest] >= chosen.tasks and longest >= chosen.nodes:  # else none is enough
            enough = np.flatnonzero((length >= chosen.nodes) & (tasks >= chosen.tasks))
            best = int(enough[np.argmin(tasks[enough])]) if len(enough) else largest
        if (
            chosen.nodes <= 1
            and (single := _tightest(chosen, int(edges[best, 0]), int(edges[best, 1]))) is not None
        ):
            chosen.take((single,))
            return
        chosen.take_run(int(edges[best, 0]), int(edges[best, 1]), int(tasks[best]))
        if chosen.is_complete or chosen.most <= 0:
            return
        length[largest] = tasks[largest] = -1  # used up
