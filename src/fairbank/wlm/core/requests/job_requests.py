"""Requests about jobs that exist: hold, release, requeue, cancel, signal, notify, top.

A request names a job, or tasks of an array; tasks that have not started leave their record first.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairbank.core.errors import Conflict, Forbidden
from fairbank.jobqueue.arrays import JobSelection
from fairbank.wlm.core.ends import end_job, release_job, requeue_job, send_signal
from fairbank.wlm.core.events import (
    Caller,
    CancelJob,
    HoldJob,
    ReleaseJob,
    RequeueJob,
    SendNotice,
    SendSignal,
    TopJob,
)
from fairbank.wlm.core.job_states import JobEvent, JobState
from fairbank.wlm.core.jobs import HeldBy, WlmJob, WlmRun
from fairbank.wlm.core.requests.known_names import check_known, unknown
from fairbank.wlm.core.requests.rights import check_owner, is_operator
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.messages import NotifyJob


def selected_jobs(
    tx: Transition, caller: Caller, selection: JobSelection, *, splits_ended: bool = False
) -> list[WlmJob]:
    """Return the jobs that a request names, which the caller may change, by number.

    Args:
        tx: the transition.
        caller: user who makes the request.
        selection: a job, an array, or tasks of it.
        splits_ended: tasks also leave a record that was cancelled as a whole, for a new run.

    Raises:
        NotFound: there is no such job or task.
        Forbidden: one of them is of another user.
    """
    jobs = [
        tx.state.jobs[other.number]
        for other in tx.state.index.with_id(selection.number)
        if selection.tasks is None or any(map(other.has_task, selection.tasks))
    ]
    missing = [
        task
        for task in selection.tasks or ()
        if not any(job.for_dependencies().has_task(task) for job in jobs)
    ]
    if not jobs or missing:
        name = f"{selection.number}_{missing[0]}" if missing else f"{selection.number}"
        raise unknown("job", name)
    for job in jobs:
        check_owner(tx.state.settings, caller, job)
    split = _split(tx, jobs, selection.tasks, splits_ended)
    return sorted(split, key=lambda job: job.number)


def _split(
    tx: Transition, jobs: list[WlmJob], tasks: tuple[int, ...] | None, splits_ended: bool
) -> Iterator[WlmJob]:
    """Yield the jobs, and of a record only the tasks that are named."""
    for job in jobs:
        is_whole = job.state.has_ended and not splits_ended
        if tasks is None or is_whole or set(job.tasks) <= set(tasks):
            yield job
            continue
        for task in tasks:
            if task in job.tasks:
                yield tx.split_task(tx.state.jobs[job.number], task)


def open_jobs(tx: Transition, caller: Caller, selection: JobSelection, done: str) -> list[WlmJob]:
    """Return the jobs of `selected_jobs` that have not ended.

    Raises Conflict if all have, with what cannot be `done`.
    """
    jobs = selected_jobs(tx, caller, selection)
    open_ones = [job for job in jobs if not job.state.has_ended]
    if not open_ones:
        raise wrong_state(jobs[0], done, "pending or running")
    return open_ones


def hold(tx: Transition, caller: Caller, body: HoldJob) -> None:
    """Hold jobs; a running one is held when it has been requeued.

    An operator's hold can be released by operators only.
    """
    by_owner = body.by_owner or not is_operator(tx.state.settings, caller)
    held_by = HeldBy.USER if by_owner else HeldBy.ADMIN
    for job in open_jobs(tx, caller, body.jobs, "held"):
        # A hold by an administrator or by the bank is not replaced by the owner's.
        if job.held_by in (None, HeldBy.USER, HeldBy.RESERVATION):
            tx.put_job(job, held_by=held_by)


def release(tx: Transition, caller: Caller, body: ReleaseJob) -> None:
    """Release held jobs, so that the next pass tests them."""
    for job in open_jobs(tx, caller, body.jobs, "released"):
        own = job.held_by in (None, HeldBy.USER, HeldBy.RESERVATION)
        if not own and not is_operator(tx.state.settings, caller):
            raise Forbidden(
                f"job {job.name} is held ({job.hold_reason}), not by its owner",
                field="job",
                remedy="ask an operator of the cluster",
            )
        if job.state.base == "PENDING":
            release_job(tx, job)
        else:
            tx.put_job(job, held_by=None)


def requeue(tx: Transition, caller: Caller, body: RequeueJob) -> None:
    """Requeue jobs that run or have ended, and of arrays only such tasks.

    Raises NotFound if a partition of one of them was removed after its end.
    """
    event, holder = JobEvent.REQUEUED, None
    if body.held or body.special:
        event = JobEvent.REQUEUED_SPECIAL if body.special else JobEvent.REQUEUED_HELD
        # As in Slurm, also after a request of an operator the owner may release the job.
        holder = HeldBy.USER
    jobs = selected_jobs(tx, caller, body.jobs, splits_ended=True)
    started = [job for job in jobs if job.state.base != "PENDING"]
    if not started:
        raise wrong_state(jobs[0], "requeued", "running, or has ended")
    for job in started:
        for partition in job.request.partitions:
            check_known("partition", partition, tx.state.partitions)
        if not job.submission.may_requeue:
            raise Conflict(
                f"job {job.name} was submitted with --no-requeue",
                field="requeue",
                remedy="submit it again"
                if job.state.has_ended
                else "allow it first: scontrol update JobId=... Requeue=1",
            )
        requeue_job(tx, job, event=event, held_by=holder)


def cancel(tx: Transition, caller: Caller, body: CancelJob) -> None:
    """Cancel jobs that have not ended. Raises Conflict if all have."""
    jobs = selected_jobs(tx, caller, body.jobs)
    if all(job.state.has_ended for job in jobs):
        raise Conflict(
            f"job {jobs[0].name} has ended ({jobs[0].state.base})",
            field="completing",
            remedy="sacct shows it",
        )
    for job in (job for job in jobs if not job.state.has_ended):
        # As in Slurm, a job keeps the reason for which it waited.
        reason = job.shown_reason(tx.now.wall) if job.state.is_waiting else "None"
        end_job(tx, job, JobEvent.CANCELLED, reason, canceller=caller.uid)


def signal(tx: Transition, caller: Caller, body: SendSignal) -> None:
    """Send a signal to processes of jobs, and of an array to the tasks that run."""
    for run in _active_runs(tx, caller, body.jobs, "signalled"):
        send_signal(tx, run, body.signal, body.target)


def notify(tx: Transition, caller: Caller, body: SendNotice) -> None:
    """Send a line to the error output of jobs that run, on the nodes of their scripts."""
    for run in _active_runs(tx, caller, body.jobs, "notified"):
        tx.send(run.batch_node, NotifyJob(run=run.run, text=body.text))


def _active_runs(
    tx: Transition, caller: Caller, selection: JobSelection, done: str
) -> list[WlmRun]:
    """Return the runs of those of the jobs that run. Raises Conflict if none does."""
    jobs = selected_jobs(tx, caller, selection)
    runs = [job.run for job in jobs if job.state is JobState.RUNNING and job.run is not None]
    if not runs:
        raise wrong_state(jobs[0], done, "running")
    return runs


def move_to_top(tx: Transition, caller: Caller, body: TopJob) -> None:
    """Move pending jobs before the others of their user, whose order among them stays.

    The jobs exchange their priorities, so that no other user's job is overtaken.
    """
    jobs = selected_jobs(tx, caller, body.jobs)
    chosen = [job for job in jobs if job.state.base == "PENDING"]
    if not chosen:
        raise wrong_state(jobs[0], "moved", "pending", begun="started")
    for job in chosen:
        if job.held_by is not None:
            raise Conflict(
                f"job {job.name} is held ({job.hold_reason}), and has no place in the queue",
                field="held",
                remedy="release it first: scontrol release",
            )
    numbers = {job.number for job in chosen}
    own = [
        job
        for job in tx.state.jobs.values()
        if job.state.is_waiting and job.submission.uid == chosen[0].submission.uid
    ]
    own.sort(key=lambda job: (-job.request.priority, job.number))
    ordered = sorted(own, key=lambda job: job.number not in numbers)
    priorities = [job.request.priority for job in own]
    # Equal priorities would leave the order of submission.
    for at in range(1, len(priorities)):
        priorities[at] = min(priorities[at], max(priorities[at - 1] - 1, 1))
    for job, priority in zip(ordered, priorities, strict=True):
        if job.request.priority != priority:
            request = msgspec.structs.replace(job.request, priority=priority, priorities=())
            tx.put_job(job, request=request, has_fixed_priority=True)
    tx.request_plan()


def wrong_state(
    job: WlmJob, done: str, needed: str, *, begun: str = "", ended: str = "ended"
) -> Conflict:
    """Return the error of a job that is not in the state that is needed.

    Args:
        job: the job.
        done: what cannot be done with it, such as "requeued".
        needed: the state, in words.
        begun: field of the error if it runs; empty: its state.
        ended: field of the error if it has ended.
    """
    field = "altered" if job.state is JobState.SUSPENDED else begun or job.state.base.lower()
    return Conflict(
        f"job {job.name} is {job.state.shown} and cannot be {done}",
        field=ended if job.state.has_ended else field,
        remedy=f"only a job that is {needed} can",
    )
