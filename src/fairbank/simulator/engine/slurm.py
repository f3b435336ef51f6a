"""Slurm's scheduler in the simulator: both passes when due, and changing priorities."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from functools import partial

from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm import processor_passes as slurm
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.snapshot import RunningJob
from fairbank.simulator.engine.clock import OnProcessors, ProcessorPass, SimulationScheduler
from fairbank.simulator.engine.pass_times import DuePass, PassTimes
from fairbank.simulator.engine.usage_state import PriorityRules, ShareAccounts, UsageState
from fairbank.simulator.traces.workload import TraceJob


class SlurmScheduler(SimulationScheduler):
    """Scheduler of a cluster: called at each event, and woken when a pass is due although nothing
    happens.
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
        self.usage_state: UsageState[TraceJob] = UsageState(rules, processors, shares)
        self.queue: PriorityQueue[TraceJob] = PriorityQueue(self.usage_state.user_of)
        self._times = PassTimes(parameters, rules.calc_period)

    def order(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob]:
        """Return the pending jobs by priority, which is computed first."""
        self.usage_state.update(self.queue, snapshot.running, now)
        return self.queue.order(now)

    def passes(self, now: int, *, has_event: bool) -> Iterator[ProcessorPass]:
        """Yield the passes that are due. `has_event`: a job arrived or ended just now."""
        for due in self._times.due(now, has_event=has_event):
            yield partial(self._pass, due)

    def next_wake(self, now: int) -> int:
        return self._times.next_due(now, len(self.queue))

    def count_skipped(self, until: int) -> None:
        self._times.count_skipped(until)

    def record_end(self, running: RunningJob[TraceJob, int], now: int) -> None:
        self.usage_state.record_end(running, now)

    def copy(self) -> SlurmScheduler:
        """Return a copy with an empty queue."""
        other = SlurmScheduler(self.parameters, self.rules, 1)
        other.usage_state = deepcopy(self.usage_state)
        other.queue = PriorityQueue(other.usage_state.user_of)
        other._times = copy(self._times)
        return other

    def _pass(self, due: DuePass, snapshot: OnProcessors, now: int) -> SchedulePlan[TraceJob, int]:
        plan, order = SchedulePlan[TraceJob, int](), self._order_if_any_fits(snapshot, now)
        if order is not None and due is DuePass.BACKFILL:
            plan = slurm.backfill(snapshot, order, self.parameters, now)
        elif order is not None:
            full = due is DuePass.FULL
            plan = slurm.main_pass(snapshot, order, self.parameters, now, full=full)
        self._times.record_pass(due, has_started=bool(plan.starts))
        return plan

    def _order_if_any_fits(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob] | None:
        """Return the jobs by priority, computed only if the order matters; None if no job fits."""
        queue, free = self.queue, snapshot.machine.free
        if queue.min_processors > free:
            return None
        if len(queue) > 1 and queue.total_processors > free:
            self.usage_state.update(queue, snapshot.running, now)
        return queue.order(now)
