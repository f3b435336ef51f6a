"""Queues of jobs that wait for processors, compared with a plain list."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.scheduling.machines.priority_queue import PriorityQueue
from fairbank.scheduling.machines.processor_queue import OrderedQueue, SearchQueue
from fairbank.scheduling.snapshot import FOR_EVER
from fairbank.simulator.traces.workload import TraceJob
from tests.scheduling.random_workloads import job

SIZE = 8


@pytest.mark.parametrize("queue", [SearchQueue, PriorityQueue])
@given(widths=st.lists(st.integers(1, SIZE), max_size=60), data=st.data())
def test_narrowest_waiting_job_is_known_after_any_change(
    queue: Callable[[], SearchQueue[TraceJob] | PriorityQueue[TraceJob]],
    widths: list[int],
    data: st.DataObject,
) -> None:
    """Jobs arrive, are searched for, which moves new jobs into the tree, and leave."""
    line, there = queue(), list[TraceJob]()
    assert line.min_processors == FOR_EVER
    for number, width in enumerate(widths):
        there.append(
            TraceJob(number, 0, width, limit=10, run=10, partition=0, name=number, user=0, group=0)
        )
        line.add(there[-1])
        if isinstance(line, SearchQueue) and data.draw(st.booleans()):
            line.first_that_fits(-1, [(SIZE, FOR_EVER)])
        if data.draw(st.booleans()):
            line.remove(there.pop(data.draw(st.integers(0, len(there) - 1))))
        assert line.min_processors == min([job.processors for job in there], default=FOR_EVER)


_shapes = st.tuples(st.integers(1, 40), st.integers(1, 40))
_holes = st.lists(_shapes, min_size=1, max_size=4).map(
    lambda shapes: list(
        zip(
            sorted({width for width, _ in shapes}),
            sorted((seconds for _, seconds in shapes), reverse=True),
            strict=False,
        )
    )
)


@settings(max_examples=60)
@given(shapes=st.lists(_shapes, max_size=200), data=st.data())
def test_first_job_that_fits_is_the_one_in_a_plain_list(
    shapes: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Jobs of many shapes arrive in batches, are searched for, and leave from any place."""
    tree: SearchQueue[TraceJob] = SearchQueue()
    plain: OrderedQueue[TraceJob] = OrderedQueue()
    for number, (width, limit) in enumerate(shapes):
        added = job(number, 0, width, limit, run=1)
        tree.add(added)
        plain.add(added)
        if not number % data.draw(st.integers(1, 40)):
            after, holes = data.draw(st.integers(-1, number)), data.draw(_holes)
            fitting = tree.first_that_fits(after, holes)
            assert fitting == plain.first_that_fits(after, holes)
            for gone in {fitting and fitting[1], data.draw(st.sampled_from(list(plain.jobs())))}:
                if gone is not None:
                    tree.remove(gone)
                    plain.remove(gone)
            assert tree.min_processors == min(
                (waiting.processors for waiting in plain.jobs()), default=FOR_EVER
            )
