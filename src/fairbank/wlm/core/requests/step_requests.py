"""Requests of srun, salloc and scancel about steps, and the end of a job that has no script."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import Conflict, NotFound, Unavailable
from fairbank.wlm.core.effects import StartTasks
from fairbank.wlm.core.ends import end_job, end_script
from fairbank.wlm.core.events import (
    Caller,
    ChangeOwner,
    CompleteJob,
    CreateStep,
    EndStepOf,
    OwnerLost,
)
from fairbank.wlm.core.job_states import BEGUN, JobEvent, JobState
from fairbank.wlm.core.jobs import WlmJob, WlmRun
from fairbank.wlm.core.requests.job_requests import wrong_state
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.requests.rights import check_owner
from fairbank.wlm.core.steps.changes import fail
from fairbank.wlm.core.steps.gpus import gpu_types
from fairbank.wlm.core.steps.placement import place_step
from fairbank.wlm.core.steps.step import WlmStep
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import SIGKILL, SIGTERM, EndStep

_SIGNALLED = 128
"""Exit code of srun for a task that a signal ended, without the number of the signal."""
STEPS_MAX = 40_000
"""Steps that a run may have, as MaxStepCount of Slurm."""


def create(tx: Transition, caller: Caller, body: CreateStep) -> WlmStep:
    """Create a step of a running job, and let its nodes start the tasks.

    Until the job has begun there, the nodes let the step wait. A repeated request gets the step
    that it has created, if that runs.

    Raises:
        Unavailable: other steps have the cores or GPUs, the job waits for the bank or is suspended,
            or a node of the step is not connected.
        FairbankError: the job is not running, belongs to another user, or has too little.
    """
    job, run = _job_with_nodes(tx, caller, body.job)
    if not run.is_allowed:
        raise Unavailable(f"job {job.name} is being configured", field="busy")
    others, key = tx.state.steps_of(run.run), body.step.key
    if key and (known := next((one for one in others if one.request.key == key), None)):
        return known
    if job.state is JobState.SUSPENDED:
        raise Unavailable(f"job {job.name} is suspended", field="busy")
    if run.steps >= STEPS_MAX:
        raise Conflict(
            f"job {job.name} has had {STEPS_MAX:,} steps", field="step", remedy="use another job"
        )
    threads = tx.state.threads_of(run.allocation.nodes)
    types = gpu_types(tx.state.nodes_of(run.allocation.nodes))
    grants = place_step(body.step, run.allocation, threads, others, types)
    # It would not get its tasks, and end the step with its next registration. A node that failed
    # has left the run, and need not return.
    if missing := {grant.node for grant in grants} & {*run.left} - tx.state.registered:
        raise Unavailable(f"node {min(missing)} is not connected", field="busy")
    step = WlmStep(
        run=run.run,
        number=run.steps,
        uid=caller.uid,
        request=body.step,
        grants=grants,
        started=tx.now,
        left=tuple(grant.node for grant in grants),
        paused=run.paused,
        srun=body.srun,
    )
    tx.put("steps", step.key, step)
    tx.put_run(job, run, steps=run.steps + 1)
    for grant in grants:
        tx.send(grant.node, StartTasks(step, body.launch))
    return step


def end(tx: Transition, caller: Caller, body: EndStepOf) -> None:
    """End a step, or send its tasks a signal. Raises NotFound if it has ended."""
    job, run = _job_with_nodes(tx, caller, body.job)
    if job.state is JobState.SUSPENDED and body.signal not in (0, SIGKILL):
        raise wrong_state(job, "signalled", "running")
    step = next((one for one in tx.state.steps_of(run.run) if one.number == body.step), None)
    if step is None:
        raise NotFound(
            f"job {body.job} has no step {body.step} that runs",
            field="step",
            remedy="squeue -s lists the steps",
        )
    if body.lost_node in step.nodes:
        if not step.end:
            step = fail(tx, step, body.lost_node, "srun lost its connection to the step daemon")
            tx.put("steps", step.key, step)
    elif body.signal in (0, SIGKILL) and step.end != "FAILED":
        tx.put(
            "steps",
            step.key,
            msgspec.structs.replace(step, end=step.end or "CANCELLED", canceller=caller.uid),
        )
    for node in step.left:
        tx.send(
            node, EndStep(run=step.run, step=step.number, number=body.signal, reason="CANCELLED")
        )


def complete_job(tx: Transition, caller: Caller, body: CompleteJob) -> None:
    """End a running job of srun or salloc, with the state of a step that memory has ended."""
    job, run = _begun_job(tx, caller, body.job)
    has_step_status = body.status == (_SIGNALLED + OUT_OF_MEMORY_STATUS) << 8
    is_killed = has_step_status and run.derived == OUT_OF_MEMORY_STATUS
    end_script(tx, job, OUT_OF_MEMORY_STATUS if is_killed else body.status)


def change_owner(tx: Transition, caller: Caller, body: ChangeOwner) -> None:
    """Let a process go on for its parent, as owner of the job and as srun of a step."""
    job, run = _begun_job(tx, caller, body.job)
    if job.owner == body.parent:
        tx.put_job(job, owner=body.owner)
    for step in tx.state.steps_of(run.run):
        if step.srun == body.parent:
            tx.put("steps", step.key, msgspec.structs.replace(step, srun=body.owner))


def end_without_owner(tx: Transition, event: OwnerLost) -> None:
    """End a job whose srun or salloc is gone, with the state and the reason of Slurm.

    A suspended one ends when it goes on.
    """
    job = tx.state.jobs.get(event.job)
    if job is None or job.owner != event.owner or job.state.has_ended:
        return
    if job.state is not JobState.SUSPENDED:
        tx.log("info", f"job {job.name} is ended: its srun or salloc is gone (InactiveLimit)")
        has_begun = job.state is JobState.RUNNING
        kind = JobEvent.TIMEOUT if has_begun else JobEvent.CANCELLED
        end_job(tx, job, kind, "InactiveLimit", status=SIGTERM if has_begun else 0)


def _own_job(tx: Transition, caller: Caller, number: int) -> WlmJob:
    job = tx.state.jobs.get(number)
    if job is None:
        raise unknown("job", number)
    check_owner(tx.state.settings, caller, job)
    return job


def _job_with_nodes(tx: Transition, caller: Caller, number: int) -> tuple[WlmJob, WlmRun]:
    job = _own_job(tx, caller, number)
    if (run := job.active_run) is None:
        raise _no_steps(job)
    return job, run


def _begun_job(tx: Transition, caller: Caller, number: int) -> tuple[WlmJob, WlmRun]:
    job, run = _job_with_nodes(tx, caller, number)
    if job.state not in BEGUN:
        raise _no_steps(job)
    return job, run


def _no_steps(job: WlmJob) -> Conflict:
    return Conflict(
        f"job {job.name} is {job.state.shown}, and can have no steps",
        field="ended" if job.state.has_ended else job.state.base.lower(),
        remedy="only a job that is running can",
    )
