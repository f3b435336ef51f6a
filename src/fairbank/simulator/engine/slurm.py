"""Slurm's scheduler in the simulator: both passes when due, and changing priorities."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm import processor_passes as slurm
from fairbank.scheduling.slurm.parameters import SECOND, SchedulerParameters
from fairbank.scheduling.snapshot import FOR_EVER, RunningJob
from fairbank.simulator.engine.clock import OnProcessors, ProcessorPass, SimulationScheduler
from fairbank.simulator.engine.usage_state import PriorityRules, ShareAccounts, UsageState
from fairbank.simulator.traces.workload import TraceJob


class SlurmScheduler(SimulationScheduler):
    """Scheduler of a cluster: called at each event, and woken when a pass is due although nothing
    happens.

    Invariants: `_full_pass_at`, `_backfill_at` and `_main_pass_at` are the times of the last passes
    of each kind. `_is_main_requested`: a main pass was requested since the last one.
    `_has_changed`: jobs changed since the last backfill cycle. `_skips_passes`: full passes are due
    every sched_interval, but start nothing until `next_wake` and are left out.
    """

    is_stateful = True

    def __init__(
        self,
        parameters: SchedulerParameters,
        rules: PriorityRules,
        processors: int,
        shares: ShareAccounts | None = None,
    ) -> None:
        self.parameters, self.rules = parameters, rules
        self.usage_state = UsageState(rules, processors, shares)
        self.queue: PriorityQueue[TraceJob] = PriorityQueue(self.usage_state.user_of)
        self._full_pass_at = self._backfill_at = 0
        self._main_pass_at = -FOR_EVER
        self._is_main_requested = self._has_changed = self._skips_passes = False

    def order(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob]:
        """Return the pending jobs by priority, which is computed first."""
        self.usage_state.update(self.queue, snapshot.running, now)
        return self.queue.order(now)

    def passes(self, now: int, *, has_event: bool) -> Iterator[ProcessorPass]:
        """Yield the passes that are due. `has_event`: a job arrived or ended just now."""
        self.count_skipped(now - 1)
        self._skips_passes = False
        self._has_changed |= has_event
        full = self.parameters.is_full_due(self._full_pass_at, now)
        self._is_main_requested |= has_event or full
        if self.parameters.is_main_due(
            self._main_pass_at * SECOND, self._is_main_requested, now * SECOND
        ):
            self._is_main_requested, self._main_pass_at = False, now
            if full:
                self._full_pass_at = now
            yield partial(self._main, full=full)
        if self.parameters.is_backfill_due(self._backfill_at, self._has_changed, now):
            self._backfill_at = now
            yield self._backfill

    def next_wake(self, now: int) -> int:
        due = self._main_due()
        if self._has_changed and self.parameters.bf_interval > 0:
            due = min(due, self._backfill_at + self.parameters.bf_interval)
        return max(due, now + 1)

    def _main_due(self) -> int:
        """Return the earliest time at which the main pass may start a job that the last one did not
        start: one that it did not reach, or one whose priority has changed since.
        """
        parameters, interval = self.parameters, self.parameters.sched_interval
        first = self._main_pass_at + parameters.sched_min_interval // SECOND + 1
        if self._is_main_requested:
            return first
        if interval <= 0:
            return FOR_EVER
        next_full = max(first, self._full_pass_at + interval)
        if max(parameters.partition_job_depth, parameters.sched_max_job_start) > 0:
            return next_full
        if len(self.queue) > parameters.default_queue_depth:
            if self._main_pass_at > self._full_pass_at or first > self._full_pass_at + interval:
                return next_full
            self._skips_passes = True
        if len(self.queue) < 2:  # one job has no order, whatever its priority
            return FOR_EVER
        # slurmctld runs a full pass every interval. Those before the priorities change start
        # nothing and are left out.
        wait = self.usage_state.next_update(self._main_pass_at) - self._full_pass_at
        return max(first, self._full_pass_at + -(-wait // interval) * interval)

    def count_skipped(self, until: int) -> None:
        interval = self.parameters.sched_interval
        if self._skips_passes and (skipped := (until - self._full_pass_at) // interval) > 0:
            self._full_pass_at = self._main_pass_at = self._full_pass_at + skipped * interval

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None:
        self.usage_state.record_end(running, now)

    def copy(self) -> SlurmScheduler:
        """Return a copy with an empty queue."""
        other = SlurmScheduler(self.parameters, self.rules, 1)
        other.usage_state = deepcopy(self.usage_state)
        other.queue = PriorityQueue(other.usage_state.user_of)
        for name in ("_full_pass_at", "_backfill_at", "_main_pass_at", "_skips_passes"):
            setattr(other, name, getattr(self, name))
        other._is_main_requested, other._has_changed = self._is_main_requested, self._has_changed
        return other

    def _main(self, snapshot: OnProcessors, now: int, *, full: bool) -> SchedulePlan[TraceJob, int]:
        plan, order = SchedulePlan[TraceJob, int](), self._order_if_any_fits(snapshot, now)
        if order is not None:
            plan = slurm.main_pass(snapshot, order, self.parameters, now, full=full)
        self._has_changed |= bool(plan.starts)
        return plan

    def _backfill(self, snapshot: OnProcessors, now: int) -> SchedulePlan[TraceJob, int]:
        plan, order = SchedulePlan[TraceJob, int](), self._order_if_any_fits(snapshot, now)
        if order is not None:
            plan = slurm.backfill(snapshot, order, self.parameters, now)
        self._has_changed = bool(plan.starts)
        return plan

    def _order_if_any_fits(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob] | None:
        """Return the jobs by priority, computed only if the order matters; None if no job fits."""
        queue, free = self.queue, snapshot.machine.free
        if queue.min_processors > free:
            return None
        if len(queue) > 1 and queue.total_processors > free:
            self.usage_state.update(queue, snapshot.running, now)
        return queue.order(now)
