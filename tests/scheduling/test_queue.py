"""Queues of jobs that wait for processors, compared with a plain list."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.machines.priority_queue import PriorityQueue
from fairbank.scheduling.machines.processor_queue import WidthQueue
from fairbank.scheduling.snapshot import FOR_EVER
from fairbank.simulator.traces.workload import TraceJob

SIZE = 8


@pytest.mark.parametrize("queue", [WidthQueue, PriorityQueue])
@given(widths=st.lists(st.integers(1, SIZE), max_size=60), data=st.data())
def test_narrowest_waiting_job_is_known_after_any_change(
    queue: Callable[[], WidthQueue[TraceJob] | PriorityQueue[TraceJob]],
    widths: list[int],
    data: st.DataObject,
) -> None:
    """Jobs arrive, are searched for, which moves new jobs into the trees, and leave."""
    line, there = queue(), list[TraceJob]()
    assert line.min_processors == FOR_EVER
    for number, width in enumerate(widths):
        there.append(
            TraceJob(number, 0, width, limit=10, run=10, partition=0, name=number, user=0, group=0)
        )
        line.add(there[-1])
        if isinstance(line, WidthQueue) and data.draw(st.booleans()):
            line.first_that_fits(-1, [(SIZE, FOR_EVER)])
        if data.draw(st.booleans()):
            line.remove(there.pop(data.draw(st.integers(0, len(there) - 1))))
        assert line.min_processors == min([job.processors for job in there], default=FOR_EVER)
