"""Times of Slurm's passes: which are due at an event, and when the next one is (slurm-rules.md,
"Main scheduler", "Backfill").
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from fairbank.scheduling.slurm.parameters import SECOND, SchedulerParameters
from fairbank.scheduling.snapshot import FOR_EVER


class DuePass(Enum):
    """Pass that is due. A full main pass tests the whole queue."""

    MAIN = "main pass"
    FULL = "full main pass"
    BACKFILL = "backfill"


class PassTimes:
    """Times of the passes of one cluster, in seconds.

    Invariants: `_full_pass_at`, `_backfill_at` and `_main_pass_at` are the times of the last passes
    of each kind. `_is_main_requested`: a main pass was requested since the last one.
    `_has_changed`: jobs changed since the last backfill cycle. `_skips_passes`: full passes are due
    every sched_interval, but start nothing until `next_due` and are left out.
    """

    def __init__(self, parameters: SchedulerParameters, calc_period: int) -> None:
        """Begin without a pass. All priorities are computed again every `calc_period` seconds."""
        self._parameters, self._calc_period = parameters, calc_period
        self._full_pass_at = self._backfill_at = 0
        self._main_pass_at = -FOR_EVER
        self._is_main_requested = self._has_changed = self._skips_passes = False

    def due(self, now: int, *, has_event: bool) -> Iterator[DuePass]:
        """Yield the passes that are due now. The caller makes each one and calls `record_pass`
        before it takes the next.

        Args:
            now: time in seconds.
            has_event: a job arrived or ended just now.
        """
        self.count_skipped(now - 1)
        self._skips_passes = False
        self._has_changed |= has_event
        full = self._parameters.is_full_due(self._full_pass_at, now)
        self._is_main_requested |= has_event or full
        if self._parameters.is_main_due(
            self._main_pass_at * SECOND, self._is_main_requested, now * SECOND
        ):
            self._is_main_requested, self._main_pass_at = False, now
            if full:
                self._full_pass_at = now
            yield DuePass.FULL if full else DuePass.MAIN
        if self._parameters.is_backfill_due(self._backfill_at, self._has_changed, now):
            self._backfill_at = now
            yield DuePass.BACKFILL

    def record_pass(self, made: DuePass, *, has_started: bool) -> None:
        """Record that a pass was made, and whether it started a job."""
        if made is DuePass.BACKFILL:
            self._has_changed = has_started
        else:
            self._has_changed |= has_started

    def next_due(self, now: int, waiting: int) -> int:
        """Return the next time at which a pass may start a job although nothing happens.

        Args:
            now: time in seconds.
            waiting: number of pending jobs.
        """
        due = self._main_due(waiting)
        if self._has_changed and self._parameters.bf_interval > 0:
            due = min(due, self._backfill_at + self._parameters.bf_interval)
        return max(due, now + 1)

    def _main_due(self, waiting: int) -> int:
        """Return the earliest time at which the main pass may start a job that the last one did not
        start: one that it did not reach, or one whose priority has changed since.
        """
        parameters, interval = self._parameters, self._parameters.sched_interval
        first = self._main_pass_at + parameters.sched_min_interval // SECOND + 1
        if self._is_main_requested:
            return first
        if interval <= 0:
            return FOR_EVER
        next_full = max(first, self._full_pass_at + interval)
        if max(parameters.partition_job_depth, parameters.sched_max_job_start) > 0:
            return next_full
        if waiting > parameters.default_queue_depth:
            if self._main_pass_at > self._full_pass_at or first > self._full_pass_at + interval:
                return next_full
            self._skips_passes = True
        if waiting < 2:  # one job has no order, whatever its priority
            return FOR_EVER
        # slurmctld runs a full pass every interval. Those before the priorities change start
        # nothing and are left out.
        period = self._calc_period
        wait = (self._main_pass_at // period + 1) * period - self._full_pass_at
        return max(first, self._full_pass_at + -(-wait // interval) * interval)

    def count_skipped(self, until: int) -> None:
        """Count the full passes up to a time that were left out because they start nothing."""
        interval = self._parameters.sched_interval
        if self._skips_passes and (skipped := (until - self._full_pass_at) // interval) > 0:
            self._full_pass_at = self._main_pass_at = self._full_pass_at + skipped * interval
