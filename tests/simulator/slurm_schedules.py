"""Small workloads under Slurm's passes on processors, and the start times of their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.priority.settings import MultifactorSettings
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.engine.usage_state import PriorityRules
from fairbank.simulator.traces.workload import TraceJob

MINUTE, HOUR = 60, 3_600
IN_TURN = PriorityRules(settings=MultifactorSettings())
"""Nothing weighs: first come, first served."""


def job(
    number: int,
    submitted: int,
    processors: int,
    limit: int,
    run: int | None = None,
    *,
    user: int = 1,
    group: int = 1,
    partition: int = 1,
) -> TraceJob:
    return TraceJob(
        number, submitted, processors, limit, run or limit, partition, number, user, group
    )


def starts(
    jobs: Sequence[TraceJob],
    size: int,
    ranking: PriorityRules = IN_TURN,
    parameters: SchedulerParameters | None = None,
) -> list[int]:
    """Return the start of each job in seconds."""
    clock = SimulationClock(
        size, SlurmScheduler(parameters or SchedulerParameters(), ranking, size)
    )
    result = {job.number: at for at, begun in clock.run(jobs) for job in begun}
    return [result[job.number] for job in jobs]
