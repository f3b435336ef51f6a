"""The policies by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fairbank.core.errors import NotFound
from fairbank.scheduling.machines.processor_queue import OrderedQueue, PartitionQueue, WidthQueue
from fairbank.scheduling.policies.conservative import conservative
from fairbank.scheduling.policies.easy import easy
from fairbank.scheduling.policies.fcfs import fcfs
from fairbank.scheduling.policies.fifo import fifo
from fairbank.simulator.engine.scheduler import JobQueue, Pass, PassAtEvents, SimulationScheduler
from fairbank.simulator.traces.workload import TraceJob

if TYPE_CHECKING:
    from fairbank.scheduling.slurm.parameters import SchedulerParameters
    from fairbank.simulator.engine.share_accounts import ShareAccounts
    from fairbank.simulator.engine.usage_state import PriorityRules


class SimulationPolicy(NamedTuple):
    """How the next ones are chosen. `scheduler` makes who decides on a machine of so many processors."""

    name: str
    about: str
    scheduler: Callable[[int], SimulationScheduler]
    asks_bank: bool = False
    """Whether it goes by the credit that is left."""
    entitling: Callable[[ShareAccounts], SimulationPolicy] | None = None
    """The same where these shares count. None: it knows nothing of shares."""
    remarks: Sequence[str] = ()
    """What its file says in vain, in words."""


def at_events(queue: Callable[[], JobQueue], pass_: Pass) -> Callable[[int], SimulationScheduler]:
    """One pass at each event, over a queue of this kind."""
    return lambda processors: PassAtEvents(queue, pass_)


_SLURM = "Slurm's main pass and backfill, by priorities: fair share, age and size"


def slurm(
    name: str,
    parameters: SchedulerParameters | None = None,
    ranking: PriorityRules | None = None,
    entitled: ShareAccounts | None = None,
) -> SimulationPolicy:
    """Slurm's passes and priorities; the usual ones, and a share for every user, where none are told."""

    def scheduler(processors: int) -> SimulationScheduler:
        from fairbank.scheduling.slurm.parameters import SchedulerParameters  # noqa: PLC0415  only who asks for priorities pays for NumPy and all that
        from fairbank.simulator.engine.slurm import SlurmScheduler  # noqa: PLC0415
        from fairbank.simulator.engine.usage_state import PriorityRules  # noqa: PLC0415

        return SlurmScheduler(
            parameters or SchedulerParameters(), ranking or PriorityRules(), processors, entitled
        )

    asks_bank = ranking is not None and ranking.site_weight > 0
    return SimulationPolicy(
        name, _SLURM, scheduler, asks_bank, lambda other: slurm(name, parameters, ranking, other)
    )


POLICIES: Mapping[str, SimulationPolicy] = {
    policy.name: policy
    for policy in (
        SimulationPolicy(
            "fifo",
            "first in, first out in each partition: whoever does not fit blocks its own",
            at_events(PartitionQueue[TraceJob], fifo),
        ),
        SimulationPolicy(
            "fcfs",
            "first come, first served: whoever does not fit blocks everybody",
            at_events(OrderedQueue[TraceJob], fcfs),
        ),
        SimulationPolicy(
            "easy",
            "EASY backfill: room is kept for the first, others fill the gap before it",
            at_events(WidthQueue[TraceJob], easy),
        ),
        SimulationPolicy(
            "conservative",
            "conservative backfill: room is kept for everybody",
            at_events(WidthQueue[TraceJob], conservative),
        ),
        slurm("slurm"),
    )
}


def policy_named(name: str) -> SimulationPolicy:
    """One of those there are. Raises NotFound, listing them."""
    found = POLICIES.get(name)
    if found is None:
        raise NotFound(
            f"there is no policy {name!r}",
            field="policy",
            remedy=f"there are: {', '.join(POLICIES)}; or name a file: NAME.toml",
        )
    return found
