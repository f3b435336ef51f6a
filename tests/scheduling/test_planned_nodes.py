"""Planned and idle nodes, compared with a table by minute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.placement import node_set
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.slurm.node_times import IdleNodes, PlannedNodes

NODES, WINDOW, STEP = 6, 40, 4
EVERYBODY = node_set.all_nodes(NODES)
nodes = st.integers(1, EVERYBODY)
plans = st.lists(st.tuples(nodes, st.integers(0, WINDOW + 8), st.integers(1, 20)), max_size=8)


def planned(some: list[tuple[NodeSet, int, int]]) -> tuple[PlannedNodes, list[NodeSet]]:
    """Return the planned nodes, and the unplanned nodes at each second until long after the
    window.
    """
    space, free = PlannedNodes(EVERYBODY, 0, WINDOW, STEP), [EVERYBODY] * 200
    for those, begin, seconds in some:
        space.take(those, begin, begin + seconds)
        first = begin // STEP * STEP
        behind = max(-(-(begin + seconds) // STEP) * STEP, first + STEP)
        if first < WINDOW:
            for at in range(first, 200 if behind >= WINDOW else behind):
                free[at] &= ~those
    return space, free


@given(plans, nodes, st.integers(0, WINDOW - 1), st.integers(1, 20), st.integers(1, NODES), plans)
def test_window_has_nodes_free_in_all_of_it_and_the_next_start(
    some: list[tuple[NodeSet, int, int]],
    among: NodeSet,
    begin: int,
    seconds: int,
    least: int,
    busy: list[tuple[NodeSet, int, int]],
) -> None:
    space, free = planned(some)
    idling = IdleNodes(EVERYBODY & ~_of(busy), sorted((end, those) for those, end, _ in busy))

    def together(first: int) -> NodeSet:
        result = among
        for at in range(first, first + seconds + 1):
            result &= free[at]
        return result

    usable, hopeless = space.unplanned_nodes(among, begin, begin + seconds, least, idling.at)
    if hopeless == begin:
        assert usable == together(begin)
    else:
        assert hopeless > begin
        for first in range(begin, min(hopeless, 150)):
            assert (together(first) & idling.at(first)).bit_count() < least


@given(plans, nodes, st.integers(0, WINDOW - 1))
def test_nodes_are_found_again_when_a_plan_ends(
    some: list[tuple[NodeSet, int, int]], among: NodeSet, after: int
) -> None:
    space, free = planned(some)
    gained = [
        at for at in range(after + 1, WINDOW) if among & free[at] & ~free[at - 1] and at > after
    ]
    assert space.next_release(among, after) == (gained[0] if gained else None)


@given(plans, nodes, st.integers(0, WINDOW - 1))
def test_first_plan_on_some_nodes_is_found(
    some: list[tuple[NodeSet, int, int]], those: NodeSet, begin: int
) -> None:
    space, free = planned(some)
    first = begin // STEP * STEP
    taken = [at for at in range(first, WINDOW) if those & free[at] != those]
    result = space.first_conflict(those, begin)
    assert (result is None) == (not taken)
    if taken and result is not None:
        assert result <= taken[0] < result + STEP or result <= first


def _of(some: list[tuple[NodeSet, int, int]]) -> NodeSet:
    result = node_set.NO_NODES
    for those, _, _ in some:
        result |= those
    return result


@given(plans, plans, st.integers(0, 80))
def test_node_is_idle_when_the_last_of_its_jobs_has_ended(
    running: list[tuple[NodeSet, int, int]], starting: list[tuple[NodeSet, int, int]], at: int
) -> None:
    idling = IdleNodes(EVERYBODY & ~_of(running), sorted((end, those) for those, end, _ in running))
    for those, end, _ in starting:
        idling.begin(end, those)
    busy = _of([job for job in running + starting if job[1] > at])
    there = _of([job for job in running if job[1] <= at])
    assert idling.at(at) == ((EVERYBODY & ~_of(running)) | there) & ~busy
