"""Timers: what is done when the time of a job, of a reservation or of a tick has come.

A timer is not stored. It is set again when the core is loaded, and when it fires its time is tested
again: a limit may have changed since, and the wall clock may have been set back.
"""

from __future__ import annotations

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.scheduling.slurm.preemption import preempt_mode
from fairbank.wlm.core.due_times import due_times
from fairbank.wlm.core.ends import (
    end_job,
    fail_launch,
    forget_job,
    preempt_job,
    remove_reservation,
    requeue_job,
    send_signal,
    test_dependencies,
)
from fairbank.wlm.core.events import TimerFired, TimerKind
from fairbank.wlm.core.factors.priorities import tick
from fairbank.wlm.core.job_states import BEGUN, JobEvent, JobState
from fairbank.wlm.core.jobs import WlmJob
from fairbank.wlm.core.requests.suspensions import count_suspension
from fairbank.wlm.core.snapshot import ending_limits, occupied_nodes
from fairbank.wlm.core.starts import arm_start
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.messages import SIGTERM


def fire(tx: Transition, timer: TimerFired) -> None:
    """Do what is due; a timer that is not needed any more changes nothing."""
    if timer.kind is TimerKind.PRIORITY:
        tick(tx)
        for ended, test in ending_limits(tx.state, tx.now):
            tx.log("info", f"job {ended.name} is ended: {test}")
            end_job(tx, ended, JobEvent.TIMEOUT, "TimeLimit", status=SIGTERM)
    elif timer.kind is TimerKind.COMPLETION:
        tx.request_plan()
    elif timer.kind is TimerKind.RESERVATION:
        _end_reservations(tx)
        arm_reservations(tx)
        tx.request_plan()
    elif (job := tx.state.jobs.get(timer.number)) is None:
        return
    elif timer.kind is TimerKind.START:
        _give_up_start(tx, job)
    elif timer.kind is TimerKind.DEPENDENCY:
        test_dependencies(tx, job)
    elif (due := dict(due_times(tx.state, job)).get(timer.kind)) is not None:
        if timer.kind.time(tx.now) >= due:
            _act(tx, job, timer.kind)
        else:
            tx.set_timer(timer.kind, job.number, due)


def _act(tx: Transition, job: WlmJob, kind: TimerKind) -> None:
    """Do what is due for a job at one of its `due_times`."""
    match kind:
        case TimerKind.BEGIN:
            tx.request_plan()
        case TimerKind.DEADLINE:
            end_job(tx, job, JobEvent.DEADLINE, "DeadLine")
        case TimerKind.LIMIT:
            end_job(tx, job, JobEvent.TIMEOUT, "TimeLimit", status=SIGTERM)
        case TimerKind.WARNING:
            _warn(tx, job)
        case TimerKind.GRACE:
            _end_grace(tx, job)
        case TimerKind.SUSPENSION:
            count_suspension(tx, job)
        case TimerKind.FORGET:
            forget_job(tx, job)


def set_all_timers(tx: Transition) -> None:
    """Set all timers again, after the state was loaded."""
    for job in list(tx.state.jobs.values()):
        run = job.active_run
        if job.state.is_waiting:
            test_dependencies(tx, job)
        elif run is not None and run.is_allowed and run.started is None:
            arm_start(tx, job)
        tx.set_timers(job)
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
            if job.state in BEGUN:
                end_job(tx, job, JobEvent.TIMEOUT, "TimeLimit", status=SIGTERM)
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


def _give_up_start(tx: Transition, job: WlmJob) -> None:
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


def _warn(tx: Transition, job: WlmJob) -> None:
    """Send the signal that the job asked for before its limit."""
    run, warning = job.active_run, job.submission.warning
    if run is not None and warning is not None:
        send_signal(tx, run, warning.number, "script" if warning.to_script else "steps")
        tx.put_run(job, run, is_warned=True)


def _end_grace(tx: Transition, job: WlmJob) -> None:
    """End a run whose grace time is over."""
    if (run := job.active_run) is not None:
        kind = (run.allocation.partition, job.request.qos)
        mode = preempt_mode(occupied_nodes(tx.state, tx.now), kind)
        preempt_job(tx, job, requeues=mode is PreemptMode.REQUEUE, grace=0)
