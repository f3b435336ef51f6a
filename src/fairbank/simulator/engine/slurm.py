"""Slurm in the simulator: its two passes when Slurm makes them, and priorities that are worked out anew while time goes on."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

from fairbank.scheduling.machines.machine import FOR_EVER, RunningJob
from fairbank.scheduling.machines.priority_queue import JobList, PriorityQueue
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm import processor_passes as slurm
from fairbank.scheduling.slurm.parameters import SECOND, SchedulerParameters
from fairbank.simulator.engine.scheduler import OnProcessors, Pass
from fairbank.simulator.engine.share_accounts import ShareAccounts
from fairbank.simulator.engine.usage_state import PriorityRules, UsageState
from fairbank.simulator.traces.workload import TraceJob


class SlurmScheduler:
    """A cluster's scheduler: asked at every event, and woken when a pass is due although nothing happens."""

    attends = True

    def __init__(
        self,
        parameters: SchedulerParameters,
        ranking: PriorityRules,
        processors: int,
        entitled: ShareAccounts | None = None,
    ) -> None:
        self.parameters, self.ranking, self.standing = (
            parameters,
            ranking,
            UsageState(ranking, processors, entitled),
        )
        self.queue: PriorityQueue[TraceJob] = PriorityQueue()
        self._full = self._filled = 0
        """When the main pass last went through the whole queue, and when backfill last ran."""
        self._ended = -FOR_EVER
        """When the main pass last ran, in full or not; and whether somebody asked for one since."""
        self._asked = self._changed = False

    def line(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob]:
        """By priorities, which are worked out for it."""
        self.standing.bring_up_to_date(self.queue, snapshot.running, now)
        return self.queue.line(now)

    def passes(self, now: int, *, event: bool) -> Iterator[Pass]:
        """Those that are due. `event`: somebody came or ended just now."""
        self._changed |= event
        full = self.parameters.full_is_due(self._full, now)
        self._asked |= event or full
        if self.parameters.main_is_due(self._ended * SECOND, self._asked, now * SECOND):
            self._asked, self._ended = False, now
            if full:
                self._full = now
            yield partial(self._main, full=full)
        if self.parameters.backfill_is_due(self._filled, self._changed, now):
            self._filled = now
            yield self._backfill

    def wake(self, now: int) -> int:
        """When a pass is next due if nothing happens, while somebody waits."""
        due = self._main_due()
        if self._changed and self.parameters.bf_interval > 0:
            due = min(due, self._filled + self.parameters.bf_interval)
        return max(due, now + 1)

    def _main_due(self) -> int:
        """When the main pass may start somebody whom the last one could not come to, at the earliest."""
        asked = self.parameters
        first = self._ended + asked.sched_min_interval // SECOND + 1
        if self._asked:
            return first
        shallow = (
            max(asked.partition_job_depth, asked.sched_max_job_start) > 0
            or len(self.queue) > asked.default_queue_depth
        )
        return (
            max(first, self._full + asked.sched_interval)
            if shallow and asked.sched_interval > 0
            else FOR_EVER
        )

    def ended(self, running: RunningJob[TraceJob, int], now: int) -> None:
        self.standing.ended(running, now)

    def admits(self, job: TraceJob, now: int) -> bool:
        return True

    def turned_away(self) -> int:
        return 0

    def copy(self) -> SlurmScheduler:
        """The same with nobody in the queue."""
        other = SlurmScheduler(self.parameters, self.ranking, 1)
        other.standing = deepcopy(self.standing)
        other._full, other._filled, other._ended = self._full, self._filled, self._ended
        other._asked, other._changed = self._asked, self._changed
        return other

    def _main(self, snapshot: OnProcessors, now: int, *, full: bool) -> SchedulePlan[TraceJob, int]:
        line = self._line(snapshot, now)
        plan = (
            SchedulePlan[TraceJob, int]()
            if line is None
            else slurm.main(snapshot, line, self.parameters, now, full=full)
        )
        self._changed |= bool(plan.starts)
        return plan

    def _backfill(self, snapshot: OnProcessors, now: int) -> SchedulePlan[TraceJob, int]:
        line = self._line(snapshot, now)
        plan = (
            SchedulePlan[TraceJob, int]()
            if line is None
            else slurm.backfill(snapshot, line, self.parameters, now)
        )
        self._changed = bool(plan.starts)
        return plan

    def _line(self, snapshot: OnProcessors, now: int) -> JobList[TraceJob] | None:
        """Who waits, by priority; None where nobody fits. Where order makes no difference, priorities are not worked out."""
        queue, free = self.queue, snapshot.machine.free
        if queue.narrowest > free:
            return None
        if len(queue) > 1 and queue.wanted > free:
            self.standing.bring_up_to_date(queue, snapshot.running, now)
        return queue.line(now)
