"""Identical processors as Slurm's backfill plans them: in steps of bf_resolution, as far as bf_window.

Source: docs/reference/slurm-rules.md, "Backfill".
"""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.machines.machine import RunningJob, TimeSlot
from fairbank.scheduling.machines.priority_queue import JobList, S
from fairbank.scheduling.machines.processors import ProcessorProfile, Processors
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.policies.fcfs import start_in_order
from fairbank.scheduling.policies.reserving import plan_with_reservations
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.scheduling.slurm.pass_rules import (
    backfill_caps,
    expected_end,
    holds_up,
    kinds,
    main_caps,
)
from fairbank.scheduling.snapshot import Snapshot


class BackfillSteps(ProcessorProfile[S]):
    """Everybody must be gone before the step in which a plan begins, not just by then; a plan lasts to the end of a step.

    For what would begin behind the window no room is kept, nor for whoever has waited less than `least_age` seconds.
    """

    __slots__ = ("_came_by", "_resolution", "_window")

    def __init__(
        self,
        machine: Processors[S],
        running: Sequence[RunningJob[S, int]],
        now: int,
        *,
        window: int,
        resolution: int,
        least_age: int = 0,
    ) -> None:
        super().__init__(machine.size, machine.free, running, now)
        self._window, self._resolution, self._came_by = (
            (now + window) // resolution * resolution,
            resolution,
            now - least_age,
        )

    def edge(self, begin: int) -> int:
        return begin // self._resolution * self._resolution - 1

    def reach(self, until: int) -> int:
        return until // self._resolution * self._resolution + self._resolution

    def overdue(self, ends: int) -> int:
        return expected_end(ends, self._now)

    def take(self, job: S, slot: TimeSlot[int]) -> None:
        if slot.begin > self._now:
            if slot.begin >= self._window or job.submitted > self._came_by:
                return
            slot = slot._replace(end=-(-slot.end // self._resolution) * self._resolution)
        super().take(job, slot)


def main(
    snapshot: Snapshot[S, int, Processors[S]],
    line: JobList[S],
    parameters: SchedulerParameters,
    now: int,
    *,
    full: bool,
) -> SchedulePlan[S, int]:
    """Who starts from the head of the line. `full`: that of every sched_interval; others stop where default_queue_depth says."""
    tested = _within(line, parameters)
    if not full:
        tested = tested.upto(parameters.default_queue_depth + 1)
    plan = start_in_order(
        tested, snapshot.machine.copy(), now, lambda job: holds_up(parameters, now - job.submitted)
    )
    most = parameters.sched_max_job_start
    return plan._replace(starts=plan.starts[:most]) if most else plan


def backfill(
    snapshot: Snapshot[S, int, Processors[S]],
    line: JobList[S],
    parameters: SchedulerParameters,
    now: int,
    *,
    fully: bool = False,
) -> SchedulePlan[S, int]:
    """Who starts in the gaps before those for whom room is kept. It ends where nobody behind can start now; with `fully` all are told when
    they are expected to start who are tested, also those for whom no room is kept: the young, and those behind the window."""
    machine = snapshot.machine
    tested = _considered(line, parameters).upto(parameters.bf_max_job_test)
    ahead: BackfillSteps[S] = BackfillSteps(
        machine,
        snapshot.running,
        now,
        window=parameters.window_seconds,
        resolution=parameters.bf_resolution,
        least_age=parameters.bf_min_age_reserve,
    )
    return _until(
        plan_with_reservations(tested, machine, ahead, now, most=None, fully=fully),
        tested,
        parameters.bf_max_job_start,
    )


def _within(line: JobList[S], parameters: SchedulerParameters) -> JobList[S]:
    caps = main_caps(parameters)
    return JobList([job for _, job in line if caps.takes(job.partition)]) if caps else line


def _considered(line: JobList[S], parameters: SchedulerParameters) -> JobList[S]:
    caps = backfill_caps(parameters)
    return (
        JobList(
            [
                job
                for _, job in line
                if caps.takes(*kinds(parameters, job.user, job.group, job.partition))
            ]
        )
        if caps
        else line
    )


def _until(plan: SchedulePlan[S, int], tested: JobList[S], starts: int) -> SchedulePlan[S, int]:
    """A cycle ends with so many starts, and plans for nobody behind the last of them; 0: however many there are."""
    if not 0 < starts <= len(plan.starts):
        return plan
    turns = {job.number: turn for turn, job in tested}
    last = turns[plan.starts[starts - 1].job.number]
    return plan._replace(
        starts=plan.starts[:starts],
        planned=[each for each in plan.planned if turns[each.job.number] < last],
    )
