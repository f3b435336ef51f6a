"""Ends of runs and jobs: end, requeue, clean-up, forgetting.

The end of a run is decided once, and its accounting record is written then. Its processes and
epilogs may go on: a node is free when it has cleared the run. When all have, the agent gets the
epilog message.
"""

from __future__ import annotations

import msgspec

from fairbank.jobqueue.dependencies import advance, next_test
from fairbank.wlm.core.events import TimerKind
from fairbank.wlm.core.factors.priorities import rank_jobs
from fairbank.wlm.core.factors.usage import count_end
from fairbank.wlm.core.job_states import JobEvent, JobState, end_of_script, next_state
from fairbank.wlm.core.jobs import EndedRun, HeldBy, Moment, WlmJob, WlmRun
from fairbank.wlm.core.steps.changes import end_steps
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.messages import (
    ENDED_BY_CONTROLLER,
    SIGCONT,
    SIGTERM,
    EndCause,
    EndJob,
    ForgetRun,
    SignalJob,
    SignalTarget,
)

NODE_FAIL_STATUS = 1
"""Exit status of a run whose node failed; Slurm prints it as 0:1."""
ENDED_BY_SIGNAL = frozenset({"CANCELLED", "DEADLINE", "PREEMPTED", "REQUEUED", "TIMEOUT"})
"""Ends of runs whose script gets SIGTERM; how it ended is known only later."""


def end_job(
    tx: Transition,
    job: WlmJob,
    event: JobEvent,
    reason: str,
    *,
    status: int = 0,
    canceller: int | None = None,
    ended: Moment | None = None,
) -> WlmJob:
    """End a job for good.

    Args:
        tx: the transition.
        job: a job that has not ended.
        event: how it ends.
        status: exit status of its script.
        canceller: uid of the user who cancelled it.
        ended: time at which its script ended; None: now.
    """
    run = job.active_run
    if run is not None:
        job = _close_run(tx, job, run, event.name, status, canceller, ended)
    held_by = None if run is not None else job.held_by  # the queue shows it with its priority of 0
    job = tx.move(job, event, reason=reason, ended=tx.now, canceller=canceller, held_by=held_by)
    if run is None:
        # It waited. The run that never began has a record of its own.
        _record(tx, job, None, event.name, canceller)
    return _clear_if_done(tx, job)


def requeue_job(
    tx: Transition,
    job: WlmJob,
    *,
    event: JobEvent = JobEvent.REQUEUED,
    held_by: HeldBy | None = None,
    reason: str = "None",
    status: int = 0,
    ended: Moment | None = None,
) -> WlmJob:
    """End the run of a job, and put the job back into the queue with a new run.

    It waits for a while, as in Slurm, unless its start was never sent to a node.

    Args:
        tx: the transition.
        job: a job that runs or has ended.
        event: REQUEUED, or with a state in which it is held.
        held_by: holder of the job, unless it was held while it was running.
        status: exit status of the script of the run that ends.
        ended: time at which it ended; None: now.
    """
    run = job.active_run
    if run is not None:
        job = _close_run(tx, job, run, "REQUEUED", status, None, ended)
    after = next_state(job.state, event)
    held_by, eligible = job.held_by or held_by, job.request.eligible
    if (run is None or run.is_allowed) and eligible <= tx.now.wall:
        # A second more, since Slurm counts whole ones.
        eligible = tx.now.wall + tx.state.settings.jobs.requeue_wait + 1
    reservation = job.request.reservation
    if reservation not in tx.state.reservations and reservation is not None:
        reservation, held_by = None, held_by or HeldBy.RESERVATION
    job = tx.move(
        job,
        event,
        request=msgspec.structs.replace(
            job.request, submitted=tx.now.wall, eligible=eligible, reservation=reservation
        ),
        restarts=job.restarts + 1,
        exit_status=0 if run is not None or job.run is None else job.run.status,
        accrued=0,
        run=job.run if after.is_completing else None,
        held_by=held_by,
        reason=reason,
        ended=None,
        canceller=None,
        waited_for="None",
        eligible_since=tx.now.wall,
    )
    tx.request_plan()
    return _clear_if_done(tx, job)


def release_job(tx: Transition, job: WlmJob) -> None:
    """Release a held job, so that the next pass tests it."""
    job = tx.put_job(
        job,
        held_by=None,
        has_fixed_priority=False,
        launch_failures=0,
        reason="None",
        admin_comment="",
    )
    rank_jobs(tx, [job])
    job = tx.state.jobs[job.number]
    if {"REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"}.intersection(job.state.flags):
        tx.move(job, JobEvent.RELEASED)
    tx.request_plan()


def remove_reservation(tx: Transition, name: str) -> None:
    """Remove a reservation. The jobs that wait for it are held; released, they need none."""
    tx.put("reservations", name, None)
    for job in list(tx.state.jobs.values()):
        if job.state.base != "PENDING" or job.request.reservation != name:
            continue
        request = msgspec.structs.replace(job.request, reservation=None)
        job = tx.put_job(job, request=request, held_by=job.held_by or HeldBy.RESERVATION)
        if job.state is JobState.PENDING:
            tx.move(job, JobEvent.RESERVATION_DELETED)
    tx.request_plan()


def end_script(
    tx: Transition,
    job: WlmJob,
    status: int,
    *,
    cause: EndCause = "exit",
    ended: Moment | None = None,
) -> WlmJob:
    """End or requeue a running job whose script has ended.

    Args:
        tx: the transition.
        job: a running job.
        status: exit status of wait(2).
        cause: what its node reports as the cause.
        ended: time at which it ended; None: now.
    """
    event, reason = end_of_script(status, cause)
    code, jobs = status // 256, tx.state.settings.jobs
    if event is JobEvent.FAILED and job.submission.may_requeue:
        if code in jobs.requeue_exit_hold:
            special = JobEvent.REQUEUED_SPECIAL
            job = requeue_job(
                tx, job, event=special, held_by=HeldBy.USER, status=status, ended=ended
            )
            return tx.put_job(job, exit_status=status)
        if code in jobs.requeue_exit:
            job = requeue_job(tx, job, status=status, ended=ended)
            return tx.put_job(job, exit_status=status)
    return end_job(tx, job, event, reason, status=status, ended=ended)


def fail_launch(tx: Transition, job: WlmJob, *, is_prolog: bool) -> WlmJob:
    """Requeue a job whose prolog or launch failed, or hold it; one that may not ends."""
    failures = job.launch_failures + (not is_prolog)
    job = tx.put_job(job, launch_failures=failures)
    if not job.submission.may_requeue:
        return end_job(tx, job, JobEvent.FAILED, "JobLaunchFailure")
    held_by = None
    if is_prolog and tx.state.settings.scheduling.holds_after_prolog:
        held_by = HeldBy.ADMIN
    elif failures > tx.state.settings.jobs.max_batch_requeue:
        held_by = HeldBy.REQUEUES
    return requeue_job(tx, job, held_by=held_by)


def lose_node(tx: Transition, job: WlmJob, node: str, *, is_clear: bool = False) -> None:
    """Take a node that failed from a job. The job ends or is requeued, unless it goes on.

    Args:
        tx: the transition.
        job: a job with processes on the node.
        node: name of the node.
        is_clear: the node has no processes of the job any more.
    """
    run = job.active_run
    if run is not None and (node == run.batch_node or not job.submission.no_kill):
        if job.submission.may_requeue:
            job = requeue_job(tx, job, status=NODE_FAIL_STATUS)
        else:
            job = end_job(tx, job, JobEvent.NODE_FAIL, "NodeDown", status=NODE_FAIL_STATUS)
    if job.run is not None and node in job.run.left:
        if not is_clear:
            leave_stray(tx, job.run, node)
        _free_node(tx, job, job.run, node)


def leave_stray(tx: Transition, run: WlmRun, node: str) -> None:
    """Keep a node from jobs until it has ended the processes of a run that it was taken from."""
    if run.is_allowed:
        tx.send(node, EndJob(run=run.run, reason=run.end or ENDED_BY_CONTROLLER))
        tx.put_node(node, strays=(*tx.state.nodes[node].strays, run.run))


def send_signal(tx: Transition, run: WlmRun, number: int, target: SignalTarget) -> None:
    """Send a signal to the batch script of a run, its steps, or both."""
    job = tx.state.job_of(run.run)
    for node in run.left:
        if node == run.batch_node and job is not None and job.submission.script:
            tx.send(node, SignalJob(run=run.run, number=number, target=target))
        elif target != "script":
            # There an idle process holds the run; without it the job would end.
            tx.send(node, SignalJob(run=run.run, number=number, target="steps"))


def preempt_job(tx: Transition, job: WlmJob, *, requeues: bool, grace: int) -> None:
    """Preempt a running job, after its grace time if it has one.

    Args:
        tx: the transition.
        job: job of which nodes are needed.
        requeues: PreemptMode=REQUEUE; a job that may not be requeued is cancelled.
        grace: GraceTime of its partition in seconds.
    """
    run = job.active_run
    if run is None:
        return
    # One that is suspended could not use it.
    if grace and run.grace_ends is None and run.started is not None and run.suspended is None:
        tx.put_run(job, run, grace_ends=tx.now.mono + grace)
        for number in (SIGCONT, SIGTERM):
            send_signal(tx, run, number, "all")
    elif (run.grace_ends or 0) <= tx.now.mono:
        if requeues and job.submission.may_requeue:
            requeue_job(tx, job)
        else:
            end_job(tx, job, JobEvent.PREEMPTED, "None")


def clear_node(tx: Transition, job: WlmJob, node: str) -> None:
    """Free a node that has cleared the run of a job, and let the node forget the run."""
    run = job.run
    if run is None or node not in run.left:
        return
    tx.send(node, ForgetRun(run=run.run))
    if not run.end:
        # Its processes are gone, and no end was reported: the launcher or the node lost them.
        lose_node(tx, job, node, is_clear=True)
    else:
        _free_node(tx, job, run, node)


def _free_node(tx: Transition, job: WlmJob, run: WlmRun, node: str) -> None:
    left = tuple(other for other in run.left if other != node)
    _clear_if_done(tx, tx.put_run(job, run, left=left))
    tx.request_plan()


def _close_run(
    tx: Transition,
    job: WlmJob,
    run: WlmRun,
    end: str,
    status: int,
    canceller: int | None,
    ended: Moment | None,
) -> WlmJob:
    """Decide the end of the active run: write its record, and let its nodes end it."""
    if run.started is not None and end in ENDED_BY_SIGNAL:
        status = status or SIGTERM
    # Before the start was sent, no node knows the run.
    left = run.left if run.is_allowed else ()
    ended = ended or tx.now
    closed = msgspec.structs.replace(
        run, ended=ended, end=end, status=status, left=left, grace_ends=None
    )
    for node in left:
        tx.send(node, EndJob(run=run.run, reason=end))
    end_steps(tx, run, end, ended)
    _record(tx, job, closed, end, canceller)
    count_end(tx, job, closed)
    return tx.put_job(job, run=closed)


def _record(
    tx: Transition, job: WlmJob, run: WlmRun | None, end: str, canceller: int | None
) -> None:
    identity = job.identity(tx.state.settings.cluster.cluster_name) if run is None else run.run
    tx.record(
        EndedRun(
            identity=identity,
            request=job.request,
            submission=job.submission,
            state=end,
            reason=job.waited_for,
            ended=tx.now.wall if run is None or run.ended is None else run.ended.wall,
            tasks=job.tasks,
            canceller=canceller,
            run=run,
            eligible_since=job.eligible_since,
        )
    )


def _clear_if_done(tx: Transition, job: WlmJob) -> WlmJob:
    """Finish the clean-up of a job if no node is left."""
    if job.state.is_completing and job.run is not None and not job.run.left:
        tx.send_to_agent("epilog", job, job.run)
        job = tx.move(job, JobEvent.CLEARED)
        if not job.state.is_final:
            job = tx.put_job(job, run=None)
        tx.request_plan()
    return job


def forget_job(tx: Transition, job: WlmJob) -> None:
    """Forget an ended job whose time has come; an array only as a whole.

    Dependencies on an array ask for all of its tasks.
    """
    age = tx.state.settings.cluster.min_job_age
    tasks = [
        tx.state.jobs[other.number]
        for other in tx.state.index.with_id(job.request.array or job.number)
    ]
    ends = [task.ended.mono + age for task in tasks if task.state.is_final and task.ended]
    if len(ends) < len(tasks):
        return  # the end of the last task sets another timer
    if max(ends) > tx.now.mono:
        return  # the timer of that task forgets all of them
    for task in tasks:
        tx.put("jobs", task.number, None)


def settle_dependencies(tx: Transition) -> None:
    """Follow the dependencies of pending jobs on the jobs that the event has changed."""
    state = tx.state
    while tx.changed_jobs:
        number = next(iter(tx.changed_jobs))
        before = tx.changed_jobs.pop(number)
        job = state.jobs.get(number)
        if job is None:
            continue
        test_dependencies(tx, job)
        dependents = state.dependents(job.for_dependencies())
        if before is not None:  # it may have had another name
            dependents |= state.dependents(before)
        for dependent in sorted(dependents):
            test_dependencies(tx, state.jobs[dependent])


def test_dependencies(tx: Transition, job: WlmJob) -> None:
    """Update the dependencies of a pending job; cancel it if they cannot be met and it says so."""
    if job.state.base != "PENDING" or not job.dependencies.open:
        return
    now, index = tx.now.wall, tx.state.index
    if (at := next_test(job.dependencies, index, now)) is not None:
        tx.set_timer(TimerKind.DEPENDENCY, job.number, at)
    if job.tasks and any(item.kind == "aftercorr" for item in job.dependencies.open):
        _split_decided_tasks(tx, job)
        return
    on = advance(job.dependencies, job.for_dependencies(), index, now)
    if on is job.dependencies:
        return
    if on.is_unmeetable and job.submission.kill_invalid:
        job = msgspec.structs.replace(job, dependencies=on)
        end_job(tx, job, JobEvent.CANCELLED, "DependencyNeverSatisfied")
        return
    tx.put_job(job, dependencies=on)
    if on.is_met:
        tx.request_plan()


def _split_decided_tasks(tx: Transition, record: WlmJob) -> None:
    """Take the tasks out of a record that do not wait any more: `aftercorr` differs by task.

    `settle_dependencies` then tests each of them by itself.
    """
    for task in record.tasks:
        own = record.for_dependencies()._replace(task=task, tasks=())
        on = advance(record.dependencies, own, tx.state.index, tx.now.wall)
        if on.is_met or on.is_unmeetable:
            tx.split_task(tx.state.jobs[record.number], task)
