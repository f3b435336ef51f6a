"""Selection of nodes among those that are sufficient (slurm-rules.md, "Node selection").

The lightest nodes come first. Of these, runs of consecutive nodes are used whole, so that few runs
are broken, and no more nodes than needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from fairbank.scheduling.placement import exhaustive_search, node_set
from fairbank.scheduling.placement.exhaustive_search import NodeSelection
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.node_table import Counts


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
        return exhaustive_search.contiguous(among, weights, tasks_per_node, selection)
    if not exhaustive_search.can_hold_tasks(among, tasks_per_node, selection):
        return None
    required = selection.required
    for kind, count in selection.kinds:
        picked = node_set.first(node_set.without(among & kind, required), count)
        if picked.bit_count() < count:
            return exhaustive_search.by_size(among, tasks_per_node, selection)
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
    return exhaustive_search.by_size(among, tasks_per_node, selection)


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
    """Return the nodes of runs, those of required nodes first and then the lightest, until all
    tasks fit.
    """
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
    """Take neighbours of required nodes of one weight: first upwards, then downwards within each
    run.
    """
    for begin, end in node_set.runs(among | required):
        if beside := required & node_set.between(begin, end):
            middle = next(node_set.each(beside))
            outward = chain(range(middle, end), range(middle - 1, begin - 1, -1))
            chosen.take(place for place in outward if not beside >> place & 1)


def _tightest(chosen: _ChosenNodes, begin: int, end: int) -> int | None:
    """Return the node of a run that alone holds all remaining tasks with the fewest to spare;
    None if there is none.
    """
    room = chosen.tasks_per_node[begin:end]
    enough = np.flatnonzero(room >= max(chosen.tasks, 1))
    return begin + int(enough[np.argmin(room[enough])]) if len(enough) else None


def _take_runs(chosen: _ChosenNodes, among: NodeSet) -> None:
    """Take the tightest run of one weight that is sufficient alone; as long as there is none, the
    largest.
    """
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
