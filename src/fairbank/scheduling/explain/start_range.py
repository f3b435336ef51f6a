"""Range of likely starts of a job, from many simulated runs with sampled run times
(docs/decisions/0030).

It is a range, because it is unknown how long the other jobs will run: their time limits are upper
bounds, and most jobs end long before them. Nine jobs of ten should start before its end, and one
in ten before its begin.

A simulated run takes all running and pending jobs, samples their run times
(`run_times.RunTimeSampler`), and lets the scheduler go on from event to event until the job starts.
The range leaves out the first tenth and the last tenth of all starts. What the past cannot tell is
in no run: nodes that fail, jobs that are cancelled, later reservations.

The samples depend on a seed: the same snapshot, history and seed give the same range on any
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import msgspec

from fairbank.scheduling.event_loop import (
    EventScheduler,
    Pass,
    SimulatedStart,
    simulate_forward,
    simulated_starts,
)
from fairbank.scheduling.explain.answer import MIN_RUNS, RUNS, NoStartRange, StartRange
from fairbank.scheduling.explain.run_times import Middle, RunTimeHistory, RunTimeSampler
from fairbank.scheduling.machines.node_snapshot import OnNodes, apply_plan, copy_snapshot
from fairbank.scheduling.machines.nodes import Nodes, StartLimits
from fairbank.scheduling.pending_job import Active, PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.passes import run_passes

MAX_PASSES, MAX_PASSES_ON_NODES, MAX_JOB_TESTS = 60_000, 1_000, 16_000
"""Number of passes that all runs together may take; one may take a quarter. On nodes, where a pass
also tests each job ahead, `MAX_JOB_TESTS` limits these tests of all runs together.
"""
TESTS_PER_PASS = 16
"""Fixed cost of a pass over nodes, in job tests."""


RunProgress = Callable[[int, int], None]
"""Function that is called after each run with the number of runs made, and their maximum."""


class SimulatedRuns(NamedTuple):
    """At most `limit` simulated runs, in which jobs take run times of the history. `tick` is called
    after each. `typical` is the start of the job in `typical_starts`.
    """

    history: RunTimeHistory[str]
    limit: int = RUNS
    tick: RunProgress | None = None
    typical: int | None = None


def start_range(
    simulate: Callable[[Random, int], SimulatedStart],
    *,
    runs: int = RUNS,
    seed: int = 1,
    passes: int = MAX_PASSES,
    tick: RunProgress | None = None,
) -> StartRange | NoStartRange:
    """Return the range of many simulated runs, or the reason why there is none: the job started in
    too few of them.

    Args:
        simulate: runs one simulation, given its random numbers and the number of passes that it may
            make. One that ends without a start counts as a late start.
        runs: number of runs.
        seed: seed of the random numbers.
        passes: number of passes that all runs together may make.
        tick: called after each run.
    """
    starts: list[int] = []
    completed = passes_made = 0
    max_passes, is_cut = max(passes // 4, 1), False
    while completed < runs and (passes_made < passes or completed < min(MIN_RUNS, runs)):
        start = simulate(Random(f"{seed}:{completed}"), max_passes)  # noqa: S311  not a secret
        completed, passes_made = completed + 1, passes_made + start.passes
        if tick is not None:
            tick(completed, runs)
        if start.at is not None:
            starts.append(start.at)
        elif start.passes >= max_passes:
            is_cut = True
    starts.sort()
    earliest, median, latest = (
        _quantile(starts, -(-completed * tenths // 10)) for tenths in (1, 5, 9)
    )
    if earliest is None:
        return NoStartRange.TOO_FAR if is_cut else NoStartRange.NO_START
    return StartRange(earliest, median, latest, completed, len(starts))


def _quantile(starts: Sequence[int], runs: int) -> int | None:
    """Return the time by which so many runs have started (at least 1); None if fewer have."""
    return starts[max(runs, 1) - 1] if max(runs, 1) <= len(starts) else None


def start_range_on_nodes(
    snapshot: OnNodes,
    parameters: SchedulerParameters,
    runs: SimulatedRuns,
    number: int,
    now: int,
    *,
    ahead: Collection[int] | None = None,
) -> StartRange | NoStartRange:
    """Return the range under Slurm's two passes, which run when a job ends, a reservation begins or
    ends, or a job becomes eligible. No job arrives. The snapshot stays as it is.

    Args:
        snapshot: machine, queue and running jobs.
        parameters: SchedulerParameters of slurm.conf.
        runs: the simulated runs.
        now: time in seconds.
        ahead: numbers of the jobs that wait for its nodes before it (`Explanation.ahead`). The
            others start now or are left out, which shortens the runs: no job behind can delay it
            under backfill. None: no job is left out, which is right for a job that waits for a
            limit, because jobs behind may use that up.
    """
    after = apply_plan(snapshot, run_passes(snapshot, parameters, now), now)
    job = after.queue.job(number)
    is_limited = job is not None and all(
        after.machine.limits.hold_reason(job, name) for name in job.partitions
    )
    if ahead is not None and not is_limited:
        for other in tuple(after.queue.jobs()):
            if other.number != number and other.number not in ahead:
                after.queue.remove(other)
    passes = affordable_passes(sum(1 for _ in after.queue.jobs()) - 1)
    times = _times(after, now)

    def simulate(rng: Random, max_passes: int) -> SimulatedStart:
        sampler = RunTimeSampler(runs.history, rng)

        def run_time(job: PendingJob, limit: int, elapsed: int) -> int:
            return sampler.run_time(job.user, limit, elapsed)

        copy = copy_snapshot(after)
        scheduler = _LimitScheduler(partial(_pass, parameters), times, copy.machine.limits, now)
        return simulate_forward(
            copy, scheduler, now, number, run_time=run_time, max_passes=max_passes
        )

    sampled = start_range(simulate, runs=runs.limit, passes=passes, tick=runs.tick)
    if isinstance(sampled, StartRange):
        return msgspec.structs.replace(sampled, typical=runs.typical)
    if sampled is NoStartRange.TOO_FAR and runs.typical is not None:
        return StartRange(None, None, None, 1, 1, runs.typical)  # its run may make more passes
    return sampled


def typical_starts(
    snapshot: OnNodes, parameters: SchedulerParameters, history: RunTimeHistory[str], now: int
) -> dict[int, int]:
    """Return the starts, by the numbers of the jobs, in one simulated run in which each job takes
    the middle part of its limit that its user's jobs took.

    No job arrives. Jobs that start after the affordable number of passes are left out.

    Args:
        snapshot: nodes, running and pending jobs; it stays as it is.
        parameters: SchedulerParameters of the passes.
        history: parts of their limits that jobs took, by user.
        now: time of the first pass in seconds since 1970.
    """
    copy, sampler = copy_snapshot(snapshot), RunTimeSampler(history, Middle())
    waiting = sum(1 for _ in copy.queue.jobs())
    scheduler = _LimitScheduler(
        partial(_pass, parameters), _times(copy, now), copy.machine.limits, now
    )
    events = simulated_starts(
        copy,
        scheduler,
        now,
        run_time=lambda job, limit, elapsed: sampler.run_time(job.user, limit, elapsed),
        max_passes=affordable_passes(min(waiting, parameters.bf_max_job_test)),
    )
    return {job.number: at for job, at, _ in events if job is not None}


class _LimitScheduler(EventScheduler):
    """Scheduler that counts ends in the limits. `since`: start of the simulation."""

    def __init__(
        self,
        pass_: Pass[PendingJob, Placement],
        instants: Sequence[int],
        limits: StartLimits,
        since: int,
    ) -> None:
        super().__init__(pass_, instants)
        self._limits, self._since = limits, since

    def record_end(self, running: Active, now: int) -> None:
        self._limits.record_end(
            running.job, running.placement, now - max(running.started, self._since)
        )


def _times(snapshot: OnNodes, now: int) -> list[int]:
    """Return the times at which a job may start although none ends."""
    times: set[int] = {
        at
        for reserved, _ in snapshot.machine.reservations.named.values()
        for at in (reserved.begin, reserved.end)
    }
    times.update(job.eligible for job in snapshot.queue.jobs())
    return sorted(at for at in times if at > now)


def affordable_passes(ahead: int) -> int:
    """Return how many passes some seconds of computation allow with so many jobs ahead."""
    return max(min(MAX_PASSES_ON_NODES, MAX_JOB_TESTS // (TESTS_PER_PASS + max(ahead, 0))), 1)


def _pass(
    parameters: SchedulerParameters, snapshot: OnNodes, now: int
) -> SchedulePlan[PendingJob, Placement]:
    plan = run_passes(snapshot, parameters, now)
    nodes: Nodes = snapshot.machine
    for job, where in plan.starts:
        nodes.limits.record_start(job, where)
    return plan
