"""Suspension of jobs: they keep cores, GPUs and memory, and their time stands still."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from fairbank.jobqueue.arrays import JobSelection
from fairbank.wlm.core.events import Caller, ResumeJob, SuspendJob
from fairbank.wlm.core.job_states import BEGUN, JobEvent, JobState
from fairbank.wlm.core.jobs import Moment, WlmJob, WlmRun
from fairbank.wlm.core.requests.job_requests import selected_jobs, wrong_state
from fairbank.wlm.core.requests.rights import check_operator
from fairbank.wlm.core.starts import send_limit_to
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.messages import SuspendRun


def suspend(tx: Transition, caller: Caller, body: SuspendJob) -> None:
    """Suspend jobs, and of an array the tasks that run. Raises Conflict if none runs.

    One that is suspended stays as it is.
    """
    check_operator(tx.state.settings, caller, "suspend jobs")
    for job, run in _runs(tx, caller, body.jobs, BEGUN, "suspended", "running"):
        if job.state is JobState.SUSPENDED:
            continue
        run = msgspec.structs.replace(run, suspended=tx.now)
        tx.move(job, JobEvent.SUSPENDED, run=run)
        _send(tx, run)


def resume(tx: Transition, caller: Caller, body: ResumeJob) -> None:
    """Let suspended jobs go on. Raises Conflict if none is suspended."""
    check_operator(tx.state.settings, caller, "resume jobs")
    for job, run in _runs(tx, caller, body.jobs, {JobState.SUSPENDED}, "resumed", "suspended"):
        paused = run.paused_until(tx.now)
        run = msgspec.structs.replace(run, suspended=None, resumed=tx.now, paused=paused)
        job = tx.move(job, JobEvent.RESUMED, run=run)
        _send(tx, run)
        for node in run.left:
            send_limit_to(tx, job, run, node)
        tx.send_to_agent("limit", job, run)


def count_suspension(tx: Transition, job: WlmJob) -> None:
    """Add up a suspension that goes on, so that the hold of the bank does not lapse meanwhile."""
    run = job.active_run
    if run is None or run.suspended is None:
        return
    job = tx.put_run(
        job, run, suspended=Moment(run.suspended.wall, tx.now.mono), paused=run.paused_until(tx.now)
    )
    if job.run is not None:
        tx.send_to_agent("limit", job, job.run)


def _runs(
    tx: Transition,
    caller: Caller,
    jobs: JobSelection,
    states: Collection[JobState],
    done: str,
    needed: str,
) -> list[tuple[WlmJob, WlmRun]]:
    """Return those of the jobs that are in a state, with their runs. Raises Conflict if none is."""
    selected = selected_jobs(tx, caller, jobs)
    runs = [(job, job.run) for job in selected if job.state in states and job.run is not None]
    if runs:
        return runs
    begun = "suspended" if selected[0].state is JobState.RUNNING else ""
    raise wrong_state(selected[0], done, needed, begun=begun, ended="completing")


def _send(tx: Transition, run: WlmRun) -> None:
    for node in run.left:
        tx.send(node, SuspendRun(run=run.run, suspended=run.suspended is not None))
