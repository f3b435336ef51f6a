"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import NotFound
from fairbank.scheduling.machines.processor_queue import OrderedQueue, PartitionQueue, SearchQueue
from fairbank.scheduling.policies import conservative, easy, fcfs, fifo
from fairbank.simulator.engine.clock import (
    JobQueue,
    PassAtEvents,
    ProcessorPass,
    SimulationScheduler,
)
from fairbank.simulator.traces.workload import TraceJob

if TYPE_CHECKING:
    from fairbank.scheduling.slurm.parameters import SchedulerParameters
    from fairbank.simulator.engine.usage_state import PriorityRules, ShareAccounts


class SimulationPolicy(NamedTuple):
    """Scheduling policy. `scheduler` makes its scheduler for a number of processors."""

    name: str
    about: str
    scheduler: Callable[[int], SimulationScheduler]
    uses_credit: bool = False
    """True if priorities depend on the remaining credit."""
    with_shares: Callable[[ShareAccounts], SimulationPolicy] | None = None
    """Function that returns the policy with these shares. None: the policy ignores shares."""
    remarks: Sequence[str] = ()
    """Sentences about settings of its file that have no effect."""


def at_events(
    queue: Callable[[], JobQueue], pass_: ProcessorPass
) -> Callable[[int], SimulationScheduler]:
    """Return a scheduler with one pass at each event, over a queue of this kind."""
    return lambda processors: PassAtEvents(queue, pass_)


_SLURM = "Slurm's main pass and backfill, by priorities: fair share, age and size"


def slurm(
    name: str,
    parameters: SchedulerParameters | None = None,
    rules: PriorityRules | None = None,
    shares: ShareAccounts | None = None,
) -> SimulationPolicy:
    """Return Slurm's passes and priorities.

    Args:
        name: name of the policy in the result.
        parameters: SchedulerParameters; None: Slurm's defaults.
        rules: rules of priorities; None: the defaults of the simulator.
        shares: shares of accounts; None: each user has one share.
    """

    def scheduler(processors: int) -> SimulationScheduler:
        # Imported here: only priorities need NumPy.
        from fairbank.scheduling.slurm.parameters import SchedulerParameters  # noqa: PLC0415
        from fairbank.simulator.engine.slurm import SlurmScheduler  # noqa: PLC0415
        from fairbank.simulator.engine.usage_state import PriorityRules  # noqa: PLC0415

        return SlurmScheduler(
            parameters or SchedulerParameters(), rules or PriorityRules(), processors, shares
        )

    asks_bank = rules is not None and rules.site_weight > 0
    return SimulationPolicy(
        name, _SLURM, scheduler, asks_bank, lambda other: slurm(name, parameters, rules, other)
    )


POLICIES: Mapping[str, SimulationPolicy] = {
    policy.name: policy
    for policy in (
        SimulationPolicy(
            "fifo",
            "first in, first out: a job that does not fit blocks its partition",
            at_events(PartitionQueue[TraceJob], fifo),
        ),
        SimulationPolicy(
            "fcfs",
            "first come, first served: a job that does not fit blocks all others",
            at_events(OrderedQueue[TraceJob], fcfs),
        ),
        SimulationPolicy(
            "easy",
            "EASY backfill: a reservation for the first job, others fill the hole before it",
            at_events(SearchQueue[TraceJob], easy),
        ),
        SimulationPolicy(
            "conservative",
            "conservative backfill: a reservation for each job",
            at_events(SearchQueue[TraceJob], conservative),
        ),
        slurm("slurm"),
    )
}


def policy_named(name: str) -> SimulationPolicy:
    """Return the policy with a name. Raises NotFound, listing the existing ones."""
    policy = POLICIES.get(name)
    if policy is None:
        raise NotFound(
            f"there is no policy {name!r}",
            field="policy",
            remedy=f"there are: {', '.join(POLICIES)}; or name a file: NAME.toml",
        )
    return policy
