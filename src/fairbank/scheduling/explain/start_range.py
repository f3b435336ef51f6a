"""When a job is likely to start: a range from many rehearsals, each with run times drawn from what users' jobs did before.

The method (docs/decisions/0030). A rehearsal takes everybody who runs and waits, draws how long each of them runs (`history.Luck`), and
lets the scheduler go on from event to event until the job starts. Of all these starts, in order, the range leaves out the first tenth and
the last. What nobody can know from the past is in no rehearsal: nodes that fail, jobs that are cancelled, reservations that are made later.

The draws come from a seed: the same snapshot, history and seed give the same range on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random

from fairbank.scheduling.explain.answer import NoStartRange, StartRange
from fairbank.scheduling.explain.forward_simulation import (
    EventScheduler,
    Pass,
    SimulatedStart,
    simulate_forward,
)
from fairbank.scheduling.explain.run_times import RunTimeHistory, RunTimeSampler
from fairbank.scheduling.machines.node_rules import StartLimits
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan, copy_snapshot
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes

RUNS, FEWEST = 100, 10
"""How many rehearsals are made; at least so many, however long they take."""
PASSES, PASSES_ON_NODES, LOOKS_ON_NODES = 60_000, 1_000, 16_000
"""So many passes of the scheduler all of them together may take: then there are fewer of them. One of them may take a quarter of that. On
nodes passes also look at each of those ahead, and all of them together may do so as often as the last figure says."""
LOOKS_OF_A_PASS = 16
"""A pass over nodes costs as much as so many of these looks, whoever waits."""


Tick = Callable[[int, int], None]
"""Told after each rehearsal how many were made, and how many there are at the most."""


def start_range(
    rehearsal: Callable[[Random, int], SimulatedStart],
    *,
    runs: int = RUNS,
    seed: int = 1,
    passes: int = PASSES,
    tick: Tick | None = None,
) -> StartRange | NoStartRange:
    """`rehearsal` is given what it draws from, and how many passes it may make. Untold where the job started in too few of them.

    One that had to end without a start counts as a late one.
    """
    starts: list[int] = []
    made = spent = 0
    most, cut = max(passes // 4, 1), False
    while made < runs and (spent < passes or made < min(FEWEST, runs)):
        came = rehearsal(Random(f"{seed}:{made}"), most)  # noqa: S311 - a rehearsal, not a secret
        made, spent = made + 1, spent + came.passes
        if tick is not None:
            tick(made, runs)
        if came.at is not None:
            starts.append(came.at)
        elif came.passes >= most:
            cut = True
    starts.sort()
    first, last = max(-(-made // 10), 1) - 1, max(-(-made * 9 // 10), 1) - 1
    if first >= len(starts):
        return NoStartRange.TOO_FAR if cut else NoStartRange.KEPT
    return StartRange(
        starts[first], starts[last] if last < len(starts) else None, made, len(starts)
    )


def start_range_on_nodes(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    history: RunTimeHistory[str],
    number: int,
    now: int,
    *,
    ahead: Collection[int] | None = None,
    runs: int = RUNS,
    seed: int = 1,
    passes: int | None = None,
    tick: Tick | None = None,
) -> StartRange | NoStartRange:
    """The range under Slurm's two passes, which are made whenever somebody ends, a reservation begins or ends, or a job may start at last;
    nobody comes. The snapshot stays as it is.

    `ahead` are the numbers of those who wait for its nodes before it (`why.Why.ahead`): others start now or stay out of the rehearsals,
    which are so much shorter, since backfill lets nobody behind delay it. None: everybody is in them; so they are for a job that waits for
    a limit, which whoever is behind may use up. `passes`: None is as many as can be waited for.
    """
    after = apply_plan(snapshot, run_passes(snapshot, parameters, now), now)
    job = next((each for each in after.queue.jobs() if each.number == number), None)
    limited = job is not None and all(
        after.machine.limits.holds(job, name) for name in job.partitions
    )
    if ahead is not None and not limited:
        for other in [
            each
            for each in after.queue.jobs()
            if each.number != number and each.number not in ahead
        ]:
            after.queue.remove(other)
    if passes is None:
        passes = affordable_passes(sum(1 for _ in after.queue.jobs()) - 1)
    instants = _instants(after, now)

    def rehearsal(chance: Random, most: int) -> SimulatedStart:
        luck = RunTimeSampler(history, chance)

        def lasts(job: PendingJob, limit: int, elapsed: int) -> int:
            return luck.lasts(job.user, limit, elapsed)

        there = copy_snapshot(after)
        scheduler = _Counting(partial(_pass, parameters), instants, there.machine.limits, now)
        return simulate_forward(there, scheduler, now, number, lasts=lasts, most=most)

    return start_range(rehearsal, runs=runs, seed=seed, passes=passes, tick=tick)


class _Counting(EventScheduler):
    """Tells limits who ended. `since`: when the rehearsal begins."""

    def __init__(
        self,
        pass_: Pass[PendingJob, Placement, Nodes],
        instants: Sequence[int],
        limits: StartLimits,
        since: int,
    ) -> None:
        super().__init__(pass_, instants)
        self._limits, self._since = limits, since

    def ended(self, running: Active, now: int) -> None:
        self._limits.ended(running.job, running.placement, now - max(running.started, self._since))


def _instants(snapshot: OnNodes, now: int) -> list[int]:
    """When others may start than before without anybody's end."""
    found: set[int] = {
        at
        for reserved, _ in snapshot.machine.reserved.named.values()
        for at in (reserved.begin, reserved.end)
    }
    found.update(job.eligible for job in snapshot.queue.jobs())
    return sorted(at for at in found if at > now)


def affordable_passes(ahead: int) -> int:
    """How many passes may be made where so many stand ahead: some seconds of them."""
    return max(min(PASSES_ON_NODES, LOOKS_ON_NODES // (LOOKS_OF_A_PASS + max(ahead, 0))), 1)


def _pass(
    parameters: SchedulerParameters, snapshot: OnNodes, now: int
) -> SchedulePlan[PendingJob, Placement]:
    plan = run_passes(snapshot, parameters, now)
    nodes: Nodes = snapshot.machine
    for job, where in plan.starts:
        nodes.limits.started(job, where)
    return plan
