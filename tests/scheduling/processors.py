"""A few identical processors with running jobs, and requests for them."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from fairbank.scheduling.machines.processors import ProcessorProfile, Processors
from fairbank.scheduling.snapshot import RunningJob

SIZE = 8


class ProcessorRequest(NamedTuple):
    processors: int
    limit: int
    number: int = 0
    partition: int = 0
    submitted: int = 0
    user: int = 0
    group: int = 0


def ahead(running: list[tuple[int, int]], now: int = 0) -> ProcessorProfile[ProcessorRequest]:
    """Return running jobs from pairs of end time and number of processors."""
    machine: Processors[ProcessorRequest] = Processors(SIZE)
    there = [
        RunningJob(end, number, wide, ProcessorRequest(wide, end, number), 0)
        for number, (end, wide) in enumerate(sorted(running))
    ]
    for job in there:
        machine.take(job.placement)
    return machine.profile(there, now)


runs = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), max_size=5).filter(
    lambda taken: sum(n for _, n in taken) <= SIZE
)
resource_requests = st.lists(
    st.builds(ProcessorRequest, st.integers(1, SIZE), st.integers(1, 10)), max_size=8
)
