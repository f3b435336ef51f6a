"""Scripted queues. Each starts some jobs, puts the partitions down, and submits the waiting jobs.
It returns the partitions to put up again, if these are not the default ones. The machine: c01 to
c06 with 64 CPUs and 128 GiB, g01 and g02 with 48 CPUs and four A100, g03 and g04 with 64 CPUs and
four T4.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isfunction
from types import ModuleType

from tests.slurm.queues import Scenario
from tests.slurm.scenarios import arrays, held_jobs, holes, job_order, node_requests, reservations


def _scenarios(module: ModuleType) -> Iterator[Scenario]:
    """Return the scenarios of a module: its public functions."""
    return (
        function
        for name, function in vars(module).items()
        if isfunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    )


SCENARIOS = tuple(
    scenario
    for module in (holes, job_order, arrays, node_requests, held_jobs, reservations)
    for scenario in _scenarios(module)
)
