"""Ends of steps: what their nodes report, and the end of their run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairbank.wlm.core.events import StepChanged
from fairbank.wlm.core.jobs import DELAY_SECONDS, Moment, WlmRun, end_time, later
from fairbank.wlm.core.steps.step import EndedStep, StepUsage, WlmStep
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.protocol.messages import (
    ENDED_BY_CONTROLLER,
    SIGKILL,
    SIGTERM,
    EndStep,
    ForgetStep,
    RunOutcome,
    StepStatus,
)

_SIGNAL = 0x7F  # bits of the signal in a status of wait(2)


def record_change(tx: Transition, message: StepChanged) -> None:
    """Record how far a step is on a node."""
    _record(tx, message.node, message.status)


def compare(tx: Transition, node: str, seen: Sequence[StepStatus], *, is_new: bool) -> None:
    """Compare the steps that a node knows with those that it should have.

    Args:
        tx: the transition.
        node: name of the node.
        seen: the steps of its registration.
        is_new: it has just connected. Otherwise the start of a step may be on its way to it.
    """
    for status in seen:
        _record(tx, node, status)
    known = {(status.run, status.step) for status in seen}
    for step in list(tx.state.steps.values()) if is_new else ():
        if node in step.left and (step.run, step.number) not in known:
            _end_on(tx, step, node, None)


def _record(tx: Transition, node: str, seen: StepStatus) -> None:
    step = tx.state.steps.get(f"{seen.run}.{seen.step}")
    if step is not None and node in step.left:
        if seen.end is not None:
            _end_on(tx, step, node, seen.end)
    elif seen.end is None:
        tx.send(node, EndStep(run=seen.run, step=seen.step, reason=ENDED_BY_CONTROLLER))
    else:
        # The step has ended with its run, which did not wait for the nodes.
        tx.record_usage(StepUsage(f"{seen.run}.{seen.step}", node, seen.end.usage))
    if seen.end is not None:
        tx.send(node, ForgetStep(run=seen.run, step=seen.step))


def _end_on(tx: Transition, step: WlmStep, node: str, outcome: RunOutcome | None) -> None:
    """Note that no task of a step is left on a node. `outcome` None: the node has lost them."""
    usage = None if outcome is None else outcome.usage
    job = tx.state.job_of(step.run)
    run = None if job is None else job.run
    # It may have waited for the begin of its run, of which the controller has learned late.
    since = run.allocated if run is not None and run.started == step.started else step.started
    ended = tx.now if outcome is None else end_time(outcome, since, tx.now)
    if outcome is not None and outcome.status is not None:
        began = later(ended.minus(round(outcome.elapsed_seconds)), since)
        if step.started.mono - began.mono > DELAY_SECONDS:
            step = msgspec.structs.replace(step, started=began)
    ended = later(step.ended or ended, ended)
    if outcome is None:
        step = fail(tx, step, node, "the node does not know it")
    elif outcome.status is None:
        step = fail(tx, step, node, outcome.text)
    else:
        status = worse_status(step.status, outcome.status)
        step = msgspec.structs.replace(step, status=status)
    step = msgspec.structs.replace(
        step,
        left=tuple(other for other in step.left if other != node),
        ended=ended,
        usage=step.usage if usage is None else step.usage.with_node(usage),
    )
    if step.left:
        tx.put("steps", step.key, step)
        return
    job = tx.state.job_of(step.run)
    _close(tx, step, step.end or _state(step.status), None if job is None else job.run, ended)
    if job is not None and (run := job.active_run) is not None:
        tx.put_run(job, run, derived=max(run.derived, step.status))


def fail(tx: Transition, step: WlmStep, node: str, text: str) -> WlmStep:
    """Return a step that has failed on a node, unless its end was requested before.

    Note in its run what went wrong.
    """
    job = tx.state.job_of(step.run)
    if job is not None and (run := job.active_run) is not None:
        tx.put_run(job, run, failure=f"step {step.number} on node {node}: {text}")
    status = worse_status(step.status, SIGKILL)
    return msgspec.structs.replace(step, end=step.end or "FAILED", status=status)


def worse_status(one: int, other: int) -> int:
    """Return the status of a step of which two nodes have reported one: a signal, else the
    highest.
    """
    return next((status for status in (one, other) if status & _SIGNAL), max(one, other))


def _state(status: int) -> str:
    if status == OUT_OF_MEMORY_STATUS:
        return "OUT_OF_MEMORY"
    if status & _SIGNAL:
        return "CANCELLED"
    return "FAILED" if status else "COMPLETED"


def _close(tx: Transition, step: WlmStep, state: str, run: WlmRun | None, ended: Moment) -> None:
    ended = later(ended, step.started)
    record = EndedStep(
        step=step,
        state=state,
        ended=ended.wall,
        elapsed=ended.mono - step.started.mono if run is None else step.ran(run, ended),
        suspended=0 if run is None else step.suspended(run, ended),
    )
    tx.put("steps", step.key, None)
    tx.record_step(record)


def end_steps(tx: Transition, run: WlmRun, state: str, ended: Moment) -> None:
    """Record the ends of the steps of a run that ends; its nodes end the tasks with it."""
    for step in tx.state.steps_of(run.run):
        status = step.status or SIGTERM
        step = msgspec.structs.replace(step, status=status)
        state_of_step = state if state in ("FAILED", "NODE_FAIL") else "CANCELLED"
        _close(tx, step, step.end or state_of_step, run, ended)
