"""Slurm's two passes on identical processors, for the simulator (slurm-rules.md, "Backfill").

Backfill plans in steps of bf_resolution, as far as bf_window.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.machines.priority_queue import JobList
from fairbank.scheduling.machines.processors import (
    ProcessorProfile,
    Processors,
    ProcessorSnapshot,
    TimeSlot,
    W,
)
from fairbank.scheduling.policies import ProcessorPlan, plan_with_reservations, start_in_order
from fairbank.scheduling.slurm.parameters import (
    SchedulerParameters,
    backfill_caps,
    can_reserve,
    cap_keys,
    expected_end,
    main_caps,
)
from fairbank.scheduling.snapshot import RunningJob, new_tuple


class BackfillSteps(ProcessorProfile[W]):
    """Profile with the steps of backfill: a job must end before the step in which a reservation
    begins, and a reservation lasts to the end of a step.

    No reservation is made behind the window, nor for a job that has waited less than `least_age`
    seconds. Behind the window a slot is exact only if `fully` is true.
    """

    __slots__ = ("_latest_submit", "_window", "resolution")

    def __init__(
        self,
        machine: Processors[W],
        running: Sequence[RunningJob[W, int]],
        now: int,
        *,
        window: int,
        resolution: int,
        least_age: int = 0,
        fully: bool = True,
    ) -> None:
        super().__init__(machine.size, machine.free, running, now)
        self._window, self.resolution, self._latest_submit = (
            (now + window) // resolution * resolution,
            resolution,
            now - least_age,
        )
        if not fully:
            self._search_end = self._window

    def last_end_before(self, begin: int) -> int:
        return begin // self.resolution * self.resolution - 1

    def first_begin_after(self, until: int) -> int:
        return until // self.resolution * self.resolution + self.resolution

    def overdue_end(self, ends: int) -> int:
        return expected_end(ends, self._now)

    def take(self, job: W, slot: TimeSlot) -> None:
        if slot.begin > self._now:
            if slot.begin >= self._window or job.submitted > self._latest_submit:
                return
            end = -(-slot.end // self.resolution) * self.resolution
            slot = new_tuple(TimeSlot, (slot.begin, end, slot.processors))
        super().take(job, slot)


def main_pass(
    snapshot: ProcessorSnapshot[W],
    order: JobList[W],
    parameters: SchedulerParameters,
    now: int,
    *,
    full: bool,
) -> ProcessorPlan[W]:
    """Return the jobs that start from the head of the queue.

    Args:
        snapshot: machine, queue and running jobs.
        order: pending jobs by priority.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the pass in seconds.
        full: the pass of each sched_interval. Other passes stop at default_queue_depth tests.
    """
    caps = main_caps(parameters)
    tested = JobList([job for _, job in order if caps.allow(job.partition)]) if caps else order
    if not full:
        tested = tested.first_jobs(parameters.default_queue_depth + 1)
    plan = start_in_order(
        tested, snapshot.machine.free, lambda job: can_reserve(parameters, now - job.submitted)
    )
    most = parameters.sched_max_job_start
    return plan._replace(starts=plan.starts[:most]) if most else plan


def backfill(
    snapshot: ProcessorSnapshot[W],
    order: JobList[W],
    parameters: SchedulerParameters,
    now: int,
    *,
    fully: bool = False,
) -> ProcessorPlan[W]:
    """Return the starts in the holes before reservations.

    Args:
        snapshot: machine, queue and running jobs.
        order: pending jobs by priority.
        parameters: SchedulerParameters of slurm.conf.
        now: time of the cycle in seconds.
        fully: plan an expected start for each tested job, also for those without a reservation:
            jobs that are too young, and starts behind the window. Otherwise the cycle ends where no
            job behind can start now.
    """
    caps, tested = backfill_caps(parameters), order
    if caps:
        tested = JobList(
            [
                job
                for _, job in order
                if caps.allow(*cap_keys(parameters, job.user, job.group, job.partition))
            ]
        )
    tested = tested.first_jobs(parameters.bf_max_job_test)
    steps = BackfillSteps(
        snapshot.machine,
        snapshot.running,
        now,
        window=parameters.window_seconds,
        resolution=parameters.bf_resolution,
        least_age=parameters.bf_min_age_reserve,
        fully=fully,
    )
    plan = plan_with_reservations(tested, steps, now, max_reservations=None, is_complete=fully)
    return _cut_plan(plan, tested, parameters.bf_max_job_start)


def _cut_plan(plan: ProcessorPlan[W], tested: JobList[W], starts: int) -> ProcessorPlan[W]:
    """Return the plan of a cycle that ends with so many starts. 0: no limit."""
    if not 0 < starts <= len(plan.starts):
        return plan
    turns = {job.number: turn for turn, job in tested}
    last = turns[plan.starts[starts - 1].job.number]
    return plan._replace(
        starts=plan.starts[:starts],
        reservations=[
            reservation for reservation in plan.reservations if turns[reservation.job.number] < last
        ],
    )
