"""Random workloads, small enough that ties, full clusters and long queues are common; and their
schedules.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fairbank.scheduling.machines.processor_queue import FEW, SearchQueue
from fairbank.scheduling.machines.processors import Processors
from fairbank.scheduling.snapshot import Snapshot
from fairbank.simulator.engine.clock import OnProcessors, SimulationClock
from fairbank.simulator.engine.policies import SimulationPolicy
from fairbank.simulator.traces.workload import TraceJob

SIZE = 6
NOW = 100


def job(
    number: int, submitted: int, processors: int, limit: int, run: int, partition: int = 1
) -> TraceJob:
    return TraceJob(
        number, submitted, processors, limit, run, partition, name=number + 1, user=1, group=1
    )


def _numbered(rows: Sequence[tuple[int, int, int, int, int]]) -> list[TraceJob]:
    in_order = sorted(rows, key=lambda row: row[0])
    return [
        job(number, at, wide, max(limit, run), run, where)
        for number, (at, wide, limit, run, where) in enumerate(in_order)
    ]


def _rows(latest: int) -> st.SearchStrategy[tuple[int, int, int, int, int]]:
    return st.tuples(
        st.integers(0, latest),
        st.integers(1, SIZE),
        st.integers(1, 20),
        st.integers(1, 20),
        st.integers(1, 2),
    )


workloads = st.lists(_rows(30), max_size=25).map(_numbered)
crowds = st.lists(_rows(3), min_size=FEW + 10, max_size=FEW + 40).map(_numbered)
"""So many come at once that they are lined up by width."""


def simulated(jobs: Sequence[TraceJob], policy: SimulationPolicy, size: int = SIZE) -> list[int]:
    """Return the start time of each job."""
    result = {
        job.number: at
        for at, starts in SimulationClock(size, policy.scheduler(size)).run(jobs)
        for job in starts
    }
    return [result[job.number] for job in jobs]


def snapshot(
    running: Sequence[tuple[int, int]], waiting: Sequence[TraceJob], size: int = SIZE
) -> OnProcessors:
    """Draw a machine at NOW with running jobs: the seconds to the expected end and the processors
    of each.
    """
    made: OnProcessors = Snapshot(Processors(size), SearchQueue())
    for number, (seconds, processors) in enumerate(running, start=-len(running)):
        begun = job(number, 0, processors, seconds, seconds)
        made.begin(begun, processors, NOW)
    for arrived in waiting:
        made.queue.add(arrived)
    return made


_busy = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), max_size=4).filter(
    lambda rows: sum(wide for _, wide in rows) <= SIZE
)
snapshots: st.SearchStrategy[OnProcessors] = st.builds(snapshot, _busy, workloads)
