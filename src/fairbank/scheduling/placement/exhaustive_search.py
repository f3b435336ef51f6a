"""The last word before a job is told that nothing fits: every way there is.

Slurm leaves out nodes with little room, the smallest first, and tries again, which misses a way now and then; here none is missed.
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
    """How many nodes and tasks, which nodes in any case, and of which kinds how many: no node counts for two kinds."""

    least: int
    most: int
    tasks: int
    required: NodeSet = node_set.NOBODY
    kinds: tuple[tuple[NodeSet, int], ...] = ()
    contiguous: bool = False


def has_room(among: NodeSet, room: Counts, asked: NodeSelection) -> bool:
    """Whether the largest of them have room for all tasks, as if no node were required and no kind asked for."""
    if min(among.bit_count(), asked.most) >= asked.tasks:
        return True  # each has room for one
    sizes = room[node_set.places(among)]
    if len(sizes) > asked.most:
        sizes = np.partition(sizes, len(sizes) - asked.most)[-asked.most :]
    return int(sizes.sum()) >= asked.tasks


def by_size(among: NodeSet, room: Counts, asked: NodeSelection) -> list[int] | None:
    """The nodes with the most room, as few as do.

    Sets of nodes that leave a place for each kind are the independent ones of a matroid, so that taking the largest node that may still be
    taken ends with the most room that any choice has.
    """
    taken: list[int] = node_set.places(asked.required).tolist()
    chosen, tasks = asked.required, asked.tasks - int(room[taken].sum())
    if not _leaves_kinds(chosen, among, asked):
        return None
    places = node_set.places(node_set.without(among, asked.required)).tolist()
    for place in sorted(places, key=lambda place: (-int(room[place]), place)):
        missing = _missing(chosen, asked)
        enough = len(taken) >= asked.least and tasks <= 0
        if len(taken) == asked.most or (enough and not missing):
            break
        more = chosen | 1 << place
        if _leaves_kinds(more, among, asked) if not enough else _missing(more, asked) < missing:
            chosen = more
            taken.append(place)
            tasks -= int(room[place])
    return (
        taken if len(taken) >= asked.least and tasks <= 0 and not _missing(chosen, asked) else None
    )


def _missing(chosen: NodeSet, asked: NodeSelection) -> int:
    """How many nodes these lack at least so that each kind has its own: after Hall, for the kinds that are worst off together."""
    worst = 0
    for size in range(1, len(asked.kinds) + 1):
        for some in combinations(asked.kinds, size):
            together = node_set.NOBODY
            for nodes, _ in some:
                together |= nodes
            worst = max(worst, sum(count for _, count in some) - (chosen & together).bit_count())
    return worst


def _leaves_kinds(chosen: NodeSet, among: NodeSet, asked: NodeSelection) -> bool:
    """Whether nodes can be added to these, up to the most that may be, until each kind has its own."""
    if not asked.kinds:
        return chosen.bit_count() <= asked.most
    return (
        not _missing(chosen | among, asked)
        and chosen.bit_count() + _missing(chosen, asked) <= asked.most
    )


def contiguous(
    among: NodeSet, weights: Sequence[NodeSet], room: Counts, asked: NodeSelection
) -> list[int] | None:
    """Consecutive nodes: in a run of one weight, the lightest first, and of these the shortest that does; else in any run."""
    if not node_set.has_run(among, asked.least):
        return None
    for some in (*weights, among):
        windows = [
            window
            for begin, end in node_set.runs(some)
            if (window := _window(begin, end, room, asked))
        ]
        if windows:
            _, begin, end = min(windows)
            return list(range(begin, end))
    return None


def _window(
    begin: int, end: int, room: Counts, asked: NodeSelection
) -> tuple[int, int, int] | None:
    """The first stretch of a run that will do, behind the length of the run."""
    sums = [0, *accumulate(room[begin:end].tolist())]
    for first in range(end - begin):
        shortest = max(first + asked.least, bisect_left(sums, sums[first] + asked.tasks))
        longest = min(first + asked.most, end - begin)
        if shortest > longest or not _suits(begin + first, begin + longest, asked):
            continue
        last = next(
            last
            for last in range(shortest, longest + 1)
            if _suits(begin + first, begin + last, asked)
        )
        return end - begin, begin + first, begin + last
    return None


def _suits(begin: int, end: int, asked: NodeSelection) -> bool:
    inside = node_set.between(begin, end)
    return asked.required & inside == asked.required and _missing(inside, asked) == 0
