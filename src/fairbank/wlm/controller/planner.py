"""Planner: makes the passes of the scheduler when they are due, in a thread of the controller.

Meanwhile the event loop answers: the interpreter switches between both threads, as often as
`__main__` says. The thread also makes the snapshot, of a copy of the state that nothing changes:
with 10,000 waiting jobs it takes a tenth of a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from fairbank.scheduling.machines.node_snapshot import OnNodes
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.main_pass import main_pass
from fairbank.scheduling.slurm.parameters import SECOND
from fairbank.scheduling.slurm.passes import run_passes
from fairbank.wlm.core.events import PlanMade
from fairbank.wlm.core.settings import SchedulingSettings

PAUSE = 5_000
"""Least pause between two passes in microseconds. With 10 ms, an srun that comes just after the end
of another takes 2 ms longer, and no more jobs are submitted a second. It is also not less than the
last pass took, so that passes take half of the time at most.
"""
_DAY = 86_400 * SECOND

_Plan = SchedulePlan[PendingJob, Placement]


class PassStatistics(msgspec.Struct):
    """Passes since the start of the controller. Times are in microseconds.

    `depth` is how many jobs the last one tested, `at` its time in seconds since 1970.
    """

    count: int = 0
    last: int = 0
    most: int = 0
    total: int = 0
    tested: int = 0
    depth: int = 0
    at: int | None = None

    def record(self, microseconds: int, waiting: int, now: int) -> None:
        self.count += 1
        self.depth, self.at = waiting, now
        self.last, self.most = microseconds, max(self.most, microseconds)
        self.total += microseconds
        self.tested += waiting


class Planner:
    """Planner of one core. Its passes are those of slurmctld, at the same times.

    The rules of `SchedulerParameters` say which pass is due, as in a simulation
    (`simulator/engine/pass_times.py`). There passes take no time, and those that would start
    nothing are left out; here the settings may change between two passes.

    Backfill comes with a main pass before it. All times are monotonic; `_main_ended` is in
    microseconds, the others are in seconds.

    Invariants: `_main_ended`, `_full_at` and `_backfill_at` are the times of the last passes of
    each kind. `_is_requested`: a main pass was requested since the last one. `_has_changed`: a job
    or node changed since the last backfill. `_wake_up` is set while something is due later, and
    `_running` while a pass is made whose plan counts: there is one at a time.
    """

    def __init__(
        self,
        settings: Callable[[], SchedulingSettings],
        snapshot: Callable[[], tuple[Callable[[], OnNodes], int]],
        take_plan: Callable[[PlanMade], None],
    ) -> None:
        """Begin without a pass.

        `snapshot` returns a function that makes the snapshot for a pass in another thread, and the
        time in seconds since 1970.
        """
        self._settings, self._snapshot, self._take_plan = settings, snapshot, take_plan
        self._main_ended = self._full_at = self._backfill_at = -_DAY
        self._is_requested = self._has_changed = False
        self._pause = PAUSE
        self._wake_up: asyncio.TimerHandle | None = None
        self._running: asyncio.Future[tuple[_Plan, int]] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="planner")
        self.main, self.backfill = PassStatistics(), PassStatistics()

    def request(self) -> None:
        """Request a pass, because something has changed."""
        self._is_requested = self._has_changed = True
        self._arm()

    def drop_plan(self) -> None:
        """Drop the plan of the pass that is being made: its nodes may be others now."""
        if self._running is not None:
            self._running = None
            self._arm()

    def close(self) -> None:
        """Make no more passes. One that is being made goes on, and its plan is dropped."""
        self._running = None
        if self._wake_up is not None:
            self._wake_up.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _arm(self) -> None:
        """Set the timer of the next pass."""
        if self._running is not None:
            return  # set when it ends
        settings, now = self._settings(), _microseconds()
        parameters = settings.parameters
        earliest = self._main_ended + max(self._pause, parameters.sched_min_interval + 1)
        due = [earliest] if self._is_requested else []
        if parameters.sched_interval > 0:
            due.append((self._full_at + parameters.sched_interval) * SECOND)
        if self._has_changed and settings.backfill and parameters.bf_interval > 0:
            due.append((self._backfill_at + parameters.bf_interval) * SECOND)
        if self._wake_up is not None:
            self._wake_up.cancel()
        if due:
            # Also a pass that is due at once comes after all events of this turn of the loop.
            delay = max(min(due), earliest, now) - now
            self._wake_up = asyncio.get_running_loop().call_later(delay / SECOND, self._run)

    def _run(self) -> None:
        settings, now = self._settings(), _microseconds()
        parameters, second = settings.parameters, now // SECOND
        full = parameters.is_full_due(self._full_at, second)
        has_backfill = settings.backfill and parameters.is_backfill_due(
            self._backfill_at, self._has_changed, second
        )
        self._is_requested = False
        if full:
            self._full_at = second
        if has_backfill:
            self._backfill_at, self._has_changed = second, False
        snapshot, wall = self._snapshot()

        def make_pass() -> tuple[_Plan, int]:
            jobs = snapshot()
            make = run_passes if has_backfill else main_pass
            waiting = sum(1 for _ in jobs.queue.jobs())
            return make(jobs, parameters, wall, full=full), waiting

        self._running = asyncio.get_running_loop().run_in_executor(self._thread, make_pass)
        self._running.add_done_callback(partial(self._end_pass, now, wall, has_backfill))

    def _end_pass(
        self, begun: int, wall: int, has_backfill: bool, made: asyncio.Future[tuple[_Plan, int]]
    ) -> None:
        """Hand the plan over, and set the timer of the next pass."""
        if made is not self._running:
            return
        self._running = None
        self._main_ended = _microseconds()
        self._pause = max(PAUSE, self._main_ended - begun)
        plan, waiting = made.result()
        statistics = self.backfill if has_backfill else self.main
        statistics.record(self._main_ended - begun, waiting, wall)
        self._has_changed |= bool(plan.starts)
        self._take_plan(PlanMade(plan, has_reservations=has_backfill))
        self._arm()


def _microseconds() -> int:
    return time.monotonic_ns() // 1_000
