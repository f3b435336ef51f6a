"""Timers: begin times, dependencies by minutes, deadlines, limits, grace times, forgetting.

A timer is not stored. It is set again when the core is loaded, and its handler tests whether its
time has come: a limit may have changed since, and the wall clock may have been set back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.core.slurm_numbers import UNLIMITED_SECONDS
from fairbank.scheduling.pending_job import PendingJob
from fairbank.scheduling.slurm.preemption import preempt_mode
from fairbank.wlm.core.effects import SignalRun
from fairbank.wlm.core.ends import (
    arm_forgetting,
    end_job,
    fail_launch,
    forget_job,
    preempt_job,
    remove_reservation,
    requeue_job,
    test_dependencies,
)
from fairbank.wlm.core.events import TimerFired, TimerKind
from fairbank.wlm.core.factors.priorities import tick
from fairbank.wlm.core.job_states import JobEvent, JobState
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.snapshot import ending_limits, occupied_nodes
from fairbank.wlm.core.starts import arm_limit, arm_start
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.core.transition import Transition

LATE_END = 15
"""Status of a script that is ended at its limit: SIGTERM."""


def fire(tx: Transition, timer: TimerFired) -> None:
    """Do what is due; a timer that is not needed any more changes nothing."""
    if timer.kind is TimerKind.PRIORITY:
        tick(tx)
        for ended, test in ending_limits(tx.state, tx.now):
            tx.log("info", f"job {ended.name} is ended: {test}")
            end_job(tx, ended, JobEvent.TIMEOUT, "TimeLimit", status=LATE_END)
        return
    if timer.kind is TimerKind.COMPLETION:
        tx.request_plan()
        return
    if timer.kind is TimerKind.RESERVATION:
        _end_reservations(tx)
        arm_reservations(tx)
        tx.request_plan()
        return
    job = tx.state.jobs.get(timer.number)
    if job is not None:
        _HANDLERS[timer.kind](tx, job)


def arm_all(tx: Transition) -> None:
    """Set all timers again, after the state was loaded."""
    for job in list(tx.state.jobs.values()):
        run = job.active_run
        if job.state.is_final:
            arm_forgetting(tx, job)
        elif job.state.is_waiting:
            if not job.eligible_since and job.hold_reason is None:  # of an earlier release
                job = tx.put_job(job, eligible_since=job.request.submitted)
            arm_waiting(tx, job)
            test_dependencies(tx, job)
        elif run is not None and run.started is not None:
            arm_limit(tx, job)
            if run.grace_ends is not None:
                tx.set_timer(TimerKind.GRACE, job.number, run.grace_ends)
        elif run is not None and run.is_allowed:
            arm_start(tx, job)
    arm_reservations(tx)
    if tx.state.settings.priority.by_factors:
        tx.set_timer(TimerKind.PRIORITY, 0, tx.now.mono)


def _end_reservations(tx: Transition) -> None:
    """Remove the reservations that are over, and end the jobs that run in them."""
    for name, reservation in list(tx.state.reservations.items()):
        if not reservation.is_over(tx.now.wall):
            continue
        remove_reservation(tx, name)
        for job in list(tx.state.jobs.values()):
            if job.request.reservation != name or reservation.flexible or job.active_run is None:
                continue
            if job.state is JobState.RUNNING:
                end_job(tx, job, JobEvent.TIMEOUT, "TimeLimit", status=LATE_END)
            else:
                requeue_job(tx, job)


def arm_reservations(tx: Transition) -> None:
    """Set the timer of the next begin or end of a reservation; an end may be due."""
    times = [
        time
        for reservation in tx.state.reservations.values()
        for time in (reservation.begin, reservation.end)
        if time > tx.now.wall or time == reservation.end
    ]
    if times:
        tx.set_timer(TimerKind.RESERVATION, 0, min(times))


def arm_waiting(tx: Transition, job: WlmJob) -> None:
    """Set the timers of a pending job: its begin time and its deadline."""
    request = job.request
    if request.eligible > tx.now.wall:
        tx.set_timer(TimerKind.BEGIN, job.number, request.eligible)
    if request.deadline is not None:
        tx.set_timer(TimerKind.DEADLINE, job.number, _last_start(tx.state, request) + 1)


def _last_start(state: CoreState, request: PendingJob) -> int:
    """Return the latest time at which a job with a deadline can start."""
    rules = [state.partitions[name] for name in request.partitions if name in state.partitions]
    least = min((request.least_seconds(one) for one in rules), default=0)
    # A job without any limit may start until its deadline, which then ends it.
    return (request.deadline or 0) - (0 if least == UNLIMITED_SECONDS else least)


def _begin(tx: Transition, job: WlmJob) -> None:
    if job.state.is_waiting and job.request.eligible > tx.now.wall:
        tx.set_timer(TimerKind.BEGIN, job.number, job.request.eligible)
    else:
        tx.request_plan()


def _deadline(tx: Transition, job: WlmJob) -> None:
    """End a job that cannot end by its deadline any more, or that runs at it."""
    deadline = job.request.deadline
    if deadline is None or job.state.has_ended:
        return
    waits = job.state.base == "PENDING"
    due = _last_start(tx.state, job.request) + 1 if waits else deadline
    if tx.now.wall >= due:
        end_job(tx, job, JobEvent.DEADLINE, "DeadLine")
    else:
        tx.set_timer(TimerKind.DEADLINE, job.number, due)


def _start(tx: Transition, job: WlmJob) -> None:
    """Give up a start that its node has not confirmed (BatchStartTimeout)."""
    run = job.active_run
    if job.state is not JobState.CONFIGURING or run is None or not run.is_allowed:
        return
    due = run.allocated.mono + tx.state.settings.jobs.batch_start_timeout
    if tx.now.mono >= due:
        tx.log("warning", f"job {job.name}: no start within BatchStartTimeout")
        fail_launch(tx, job, is_prolog=False)
    else:
        tx.set_timer(TimerKind.START, job.number, due)


def _warning(tx: Transition, job: WlmJob) -> None:
    """Send the signal that the job asked for before its limit."""
    run, warning, limit = job.active_run, job.submission.warning, job.request.limit
    if run is None or run.started is None or warning is None or limit is None:
        return
    due = run.started.mono + limit - warning.seconds
    if tx.now.mono < due:
        tx.set_timer(TimerKind.WARNING, job.number, due)
        return
    nodes = (run.batch_node,) if warning.to_script else run.left
    for node in nodes:
        tx.send(node, SignalRun(run.run, warning.number, warning.to_script))


def _limit(tx: Transition, job: WlmJob) -> None:
    """End a job at its time limit, with OverTimeLimit."""
    run, seconds = job.active_run, tx.state.settings.run_seconds(job.request.limit)
    if run is None or run.started is None or seconds is None:
        return
    if tx.now.mono >= run.started.mono + seconds:
        end_job(tx, job, JobEvent.TIMEOUT, "TimeLimit", status=LATE_END)
    else:
        arm_limit(tx, job)


def _grace(tx: Transition, job: WlmJob) -> None:
    run = job.active_run
    if run is not None and run.grace_ends is not None:
        kind = (run.allocation.partition, job.request.qos)
        mode = preempt_mode(occupied_nodes(tx.state, tx.now), kind)
        preempt_job(tx, job, requeues=mode is PreemptMode.REQUEUE, grace=0)


_HANDLERS: Mapping[TimerKind, Callable[[Transition, WlmJob], None]] = {
    TimerKind.BEGIN: _begin,
    TimerKind.DEPENDENCY: test_dependencies,
    TimerKind.DEADLINE: _deadline,
    TimerKind.START: _start,
    TimerKind.WARNING: _warning,
    TimerKind.LIMIT: _limit,
    TimerKind.GRACE: _grace,
    TimerKind.FORGET: forget_job,
}
