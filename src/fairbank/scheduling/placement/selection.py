"""Which nodes a job takes of those that would do.

The lightest first; of these runs of consecutive nodes, so that few and whole runs are used up; and no more nodes than it needs.

Source: docs/reference/slurm-rules.md, "Node selection"; SLURM 2002.
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
    among: NodeSet, by_weight: Sequence[NodeSet], room: Counts, asked: NodeSelection
) -> list[int] | None:
    """The places of the nodes, in the order in which tasks are dealt to them; None where there is no way at all.

    `room` says how many tasks each node has room for, `by_weight` which nodes are of one weight, the lightest first.
    """
    if asked.required & among != asked.required or among.bit_count() < asked.least:
        return None
    lightest: NodeSet = node_set.NOBODY
    weights: list[NodeSet] = []
    for some in by_weight:
        if some & among:
            weights.append(some & among)
            lightest |= weights[-1]
            if lightest.bit_count() < asked.least or (asked.required & lightest) != asked.required:
                continue
            if (found := _of(lightest, weights, room, asked)) is not None:
                return found
    return None


def _of(
    among: NodeSet, weights: Sequence[NodeSet], room: Counts, asked: NodeSelection
) -> list[int] | None:
    if asked.contiguous:
        return exhaustive_search.contiguous(among, weights, room, asked)
    if not exhaustive_search.has_room(among, room, asked):
        return None
    kinds = asked.required
    for some, count in asked.kinds:
        picked = node_set.first(node_set.without(among & some, kinds), count)
        if picked.bit_count() < count:
            return exhaustive_search.by_size(among, room, asked)
        kinds |= picked
    if (
        kinds.bit_count() <= asked.most
        and (found := _by_runs(among, weights, room, asked._replace(required=kinds))) is not None
    ):
        return found
    return exhaustive_search.by_size(among, room, asked)


class _Hand:
    """The nodes taken so far, and what is still needed beside them."""

    def __init__(self, room: Counts, asked: NodeSelection) -> None:
        self.room = room
        self.taken: list[int] = node_set.places(asked.required).tolist()
        self.nodes = asked.least - len(self.taken)
        self.tasks = asked.tasks - int(room[self.taken].sum())
        self.most = asked.most - len(self.taken)

    @property
    def full(self) -> bool:
        """Whether nothing more is needed."""
        return self.nodes <= 0 and self.tasks <= 0

    def take(self, places: Iterable[int]) -> None:
        """One after the other, as far as they are needed."""
        for place in places:
            if self.full or self.most <= 0:
                return
            self.taken.append(place)
            self.nodes, self.most = self.nodes - 1, self.most - 1
            self.tasks -= int(self.room[place])

    def take_run(self, begin: int, end: int, tasks: int) -> None:
        """All of a run that has room for so many tasks, as far as it is needed."""
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
    among: NodeSet, weights: Sequence[NodeSet], room: Counts, asked: NodeSelection
) -> list[int] | None:
    """Run after run, those of required nodes and then the lightest first, until there are enough nodes with room for all tasks."""
    hand = _Hand(room, asked)
    if asked.required:
        for some in weights:
            _take_beside(hand, some & among, asked.required)
        among = node_set.without(among, node_set.of(hand.taken))
    for some in weights:
        if hand.full or hand.most <= 0:
            break
        _take_runs(hand, some & among)
    return hand.taken if hand.full else None


def _take_beside(hand: _Hand, among: NodeSet, required: NodeSet) -> None:
    """Of one weight: the runs that required nodes are part of, from these upwards and then downwards."""
    for begin, end in node_set.runs(among | required):
        if beside := required & node_set.between(begin, end):
            middle = next(node_set.each(beside))
            outward = chain(range(middle, end), range(middle - 1, begin - 1, -1))
            hand.take(place for place in outward if not beside >> place & 1)


def _tightest(hand: _Hand, begin: int, end: int) -> int | None:
    """Of a run that node which alone has room for all tasks that are left, and for the fewest beside them; None where none has."""
    room = hand.room[begin:end]
    enough = np.flatnonzero(room >= max(hand.tasks, 1))
    return begin + int(enough[np.argmin(room[enough])]) if len(enough) else None


def _take_runs(hand: _Hand, among: NodeSet) -> None:
    """Of one weight: the tightest run that is enough alone; while there is none the largest."""
    edges = node_set.edges(among)
    if not len(edges):
        return
    cuts = edges.ravel()
    tasks = np.add.reduceat(hand.room, cuts if cuts[-1] < len(hand.room) else cuts[:-1])[::2]
    length = edges[:, 1] - edges[:, 0]
    longest = int(length.max())
    for largest in np.argsort(-tasks, kind="stable").tolist():
        best = largest
        if tasks[largest] >= hand.tasks and longest >= hand.nodes:  # else none is enough
            enough = np.flatnonzero((length >= hand.nodes) & (tasks >= hand.tasks))
            best = int(enough[np.argmin(tasks[enough])]) if len(enough) else largest
        if (
            hand.nodes <= 1
            and (single := _tightest(hand, int(edges[best, 0]), int(edges[best, 1]))) is not None
        ):
            hand.take((single,))
            return
        hand.take_run(int(edges[best, 0]), int(edges[best, 1]), int(tasks[best]))
        if hand.full or hand.most <= 0:
            return
        length[largest] = tasks[largest] = -1  # used up
