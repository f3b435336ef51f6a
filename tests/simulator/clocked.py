"""Small workloads under Slurm's passes on processors, and when each of their jobs starts."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.priority.multifactor.settings import Settings
from fairbank.scheduling.slurm.parameters import Parameters
from fairbank.simulator.engine.clock import Clock
from fairbank.simulator.traces.workload import Job
from fairbank.simulator.engine.slurm import Slurm
from fairbank.simulator.engine.usage_state import Ranking

MINUTE, HOUR = 60, 3_600
IN_TURN = Ranking(settings=Settings())
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
) -> Job:
    return Job(number, submitted, processors, limit, run or limit, partition, number, user, group)


def starts(
    jobs: Sequence[Job], size: int, ranking: Ranking = IN_TURN, parameters: Parameters | None = None
) -> list[int]:
    """Of each job the second."""
    clock = Clock(size, Slurm(parameters or Parameters(), ranking, size))
    found = {each.number: at for at, begun in clock.run(jobs) for each in begun}
    return [found[each.number] for each in jobs]
