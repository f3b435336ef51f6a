"""Slurm's two passes over identical processors (facts, sections 5.3 and 6.2; `main` and `backfill` have all that nodes add to it).

All partitions are of the same processors. So when a job of one does not fit that holds up those behind it, nothing is left for them, in
whatever partition: the main pass is first come, first served in the order of priority. Backfill keeps room for as many as it tests.
"""

from __future__ import annotations

from fairbank.scheduling.by_priority import Listed, S
from fairbank.scheduling.fcfs import from_the_head
from fairbank.scheduling.keeping_room import keep_room
from fairbank.scheduling.parameters import Parameters
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.processors import Processors
from fairbank.scheduling.slots import Slots
from fairbank.scheduling.slurm_rules import backfill_caps, holds_up, kinds, main_caps
from fairbank.scheduling.snapshot import Snapshot


def main(
    snapshot: Snapshot[S, int, Processors[S]],
    line: Listed[S],
    parameters: Parameters,
    now: int,
    *,
    full: bool,
) -> Plan[S, int]:
    """Who starts from the head of the line. `full`: that of every sched_interval; others stop where default_queue_depth says."""
    tested = _within(line, parameters)
    if not full:
        tested = tested.upto(parameters.default_queue_depth + 1)
    plan = from_the_head(
        tested, snapshot.machine.copy(), now, lambda job: holds_up(parameters, now - job.submitted)
    )
    most = parameters.sched_max_job_start
    return plan._replace(starts=plan.starts[:most]) if most else plan


def backfill(
    snapshot: Snapshot[S, int, Processors[S]],
    line: Listed[S],
    parameters: Parameters,
    now: int,
    *,
    fully: bool = False,
) -> Plan[S, int]:
    """Who starts in the gaps before those for whom room is kept. It ends where nobody behind can start now; with `fully` all are told when
    they are expected to start who are tested, also those for whom no room is kept: the young, and those behind the window."""
    machine = snapshot.machine
    tested = _considered(line, parameters).upto(parameters.bf_max_job_test)
    ahead: Slots[S] = Slots(
        machine,
        snapshot.running,
        now,
        window=parameters.window_seconds,
        resolution=parameters.bf_resolution,
        least_age=parameters.bf_min_age_reserve,
    )
    return _until(
        keep_room(tested, machine, ahead, now, most=None, fully=fully),
        tested,
        parameters.bf_max_job_start,
    )


def _within(line: Listed[S], parameters: Parameters) -> Listed[S]:
    caps = main_caps(parameters)
    return Listed([job for _, job in line if caps.takes(job.partition)]) if caps else line


def _considered(line: Listed[S], parameters: Parameters) -> Listed[S]:
    caps = backfill_caps(parameters)
    return (
        Listed(
            [
                job
                for _, job in line
                if caps.takes(*kinds(parameters, job.user, job.group, job.partition))
            ]
        )
        if caps
        else line
    )


def _until(plan: Plan[S, int], tested: Listed[S], starts: int) -> Plan[S, int]:
    """A cycle ends with so many starts, and plans for nobody behind the last of them; 0: however many there are."""
    if not 0 < starts <= len(plan.starts):
        return plan
    turns = {job.number: turn for turn, job in tested}
    last = turns[plan.starts[starts - 1].job.number]
    return plan._replace(
        starts=plan.starts[:starts],
        planned=[each for each in plan.planned if turns[each.job.number] < last],
    )
