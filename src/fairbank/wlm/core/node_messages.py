"""Messages from nodes: registration, progress of runs, silence.

A message about a run that the job does not have any more comes from an earlier run: it ends what is
left of it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from fairbank.cluster.job import Run
from fairbank.cluster.node import Node
from fairbank.core.errors import Conflict
from fairbank.wlm.core.ends import ENDED_BY_SIGNAL, clear_node, end_script, fail_launch, lose_node
from fairbank.wlm.core.events import NodeRegistered, NodeSilent, RunChanged
from fairbank.wlm.core.job_states import BEGUN, JobEvent, JobState
from fairbank.wlm.core.jobs import DELAY_SECONDS, WlmJob, WlmRun, end_time, later
from fairbank.wlm.core.node_states import NodeCondition, NodeEvent, next_condition
from fairbank.wlm.core.starts import send_limit_to, send_start_to
from fairbank.wlm.core.state import NodeResources
from fairbank.wlm.core.steps import changes as step_changes
from fairbank.wlm.core.transition import Transition
from fairbank.wlm.protocol.messages import (
    ENDED_BY_CONTROLLER,
    SIGKILL,
    EndJob,
    ForgetRun,
    RunOutcome,
    RunStatus,
    SuspendRun,
)

KILLED_STATUS = SIGKILL
"""Wait status of a script of which none is known: a step daemon of its run was killed, perhaps on
another node. One that a request kept from starting gets it as well.
"""
CONTROLLER = "slurm"
"""Name of the controller as the author of a node's reason."""
_NOT_RESPONDING = "Not responding"
"""Reason of a silent node. As in Slurm, it is the only one that the controller replaces."""
_FAULTS = frozenset({"exit", "launch", "prolog", "step_daemon_killed"})
"""Causes of ends that come with what went wrong, if anything did."""
_NEVER, _IF_SILENT = 0, 1
"""Values of ReturnToService: a node that was DOWN waits for an administrator; only one that did
not respond returns by itself. With others every node does.
"""


def register(tx: Transition, message: NodeRegistered) -> None:
    """Take over the resources of a node, and compare its runs with those that it should have."""
    name = message.resources.name
    configured, status = tx.state.from_settings.get(name), tx.state.nodes.get(name)
    if configured is None or status is None:
        tx.log("error", f"node {name} registered, which is not configured")
        return
    is_new = name not in tx.state.registered
    if is_new:
        tx.state.set_registered(name, is_registered=True)
        tx.request_plan()
    has_booted = bool(status.boot) and status.boot != message.boot
    known = {seen.run: seen for seen in message.runs if not _is_lost(seen)}
    for job in tx.state.jobs_on(name):
        if job.run is not None and job.run.run not in known:
            _miss_run(tx, job, job.run, name, has_booted=has_booted)
    # A run that it does not know yet may be on its way to it: see `_miss_run`.
    left = () if has_booted else tx.state.nodes[name].strays[len(status.strays) :]
    strays = dict.fromkeys((*left, *_compare(tx, name, known.values())))
    step_changes.compare(tx, name, message.steps, is_new=is_new)
    lacking = _lacking(configured, message.resources)
    condition = tx.state.nodes[name].condition
    event = NodeEvent.LACKING if lacking else _registration(condition, tx)
    real = _real_resources(tx, message.resources)
    change_condition(tx, name, event, lacking, boot=message.boot, strays=(*strays,), real=real)
    for seen in message.runs:
        if _is_lost(seen):
            tx.send(name, ForgetRun(run=seen.run))
    for job in tx.state.jobs_on(name) if is_new else ():
        run = job.active_run
        if run is not None and run.started is not None:
            send_limit_to(tx, job, run, name)
            tx.set_timers(job)  # a warning may have become due meanwhile
            if run.suspended is not None or run.resumed is not None:
                tx.send(name, SuspendRun(run=run.run, suspended=run.suspended is not None))


def _registration(condition: NodeCondition, tx: Transition) -> NodeEvent:
    service = tx.state.settings.cluster.return_to_service
    if service > _IF_SILENT or (service == _IF_SILENT and condition is NodeCondition.SILENT):
        return NodeEvent.RETURNED
    return NodeEvent.REGISTERED


def _real_resources(tx: Transition, real: Node) -> NodeResources:
    """Return what a node has registered, and not less than its jobs have."""
    grants = [grant for _, grant in tx.state.grants_on(real.name)]
    threads, known = tx.state.configured[real.name].threads, tx.state.configured[real.name].gpus
    cores = [core + 1 for grant in grants for core in grant.binding.cores]
    return NodeResources(
        max([real.cpus, *(core * threads for core in cores)]),
        max(real.memory, sum(grant.memory for grant in grants)),
        real.tmp,
        known if any(grant.binding.gpus for grant in grants) else real.gpus,
    )


def _lacking(configured: Node, real: Node) -> str:
    """Return Slurm's reason if a node has less than is configured, with both figures."""
    for field, word in (("cpus", "CPUs"), ("memory", "RealMemory"), ("tmp", "TmpDisk")):
        wanted, present = getattr(configured, field), getattr(real, field)
        if present < wanted:
            return f"Low {word} (configured {wanted}, real {present})"
    gpus, wanted = (sum(gpu.number for gpu in node.gpus) for node in (real, configured))
    if gpus < wanted:
        return f"gres/gpu count reported lower than configured ({gpus} < {wanted})"
    return ""


def change_condition(
    tx: Transition,
    name: str,
    event: NodeEvent,
    reason: str,
    *,
    user: str | None = None,
    boot: str | None = None,
    strays: tuple[Run, ...] | None = None,
    real: NodeResources | None = None,
) -> None:
    """Store the condition of a node after an event.

    Args:
        tx: the transition.
        event: what happened.
        reason: reason of the new condition; a node that works has none.
        user: who gives the reason; None: the controller, whose reason replaces no other.
        boot: boot id that it reported; None: as before.
        strays: runs that it must end; None: as before.
        real: resources that it has; None: as before.
    """
    before = tx.state.nodes[name]
    condition = next_condition(before.condition, event)
    has_changed = condition is not before.condition
    if condition is NodeCondition.UP:
        reason = ""
    elif user is None and (not reason or before.reason not in ("", _NOT_RESPONDING)):
        reason = before.reason
    is_new = reason != before.reason
    after = msgspec.structs.replace(
        before,
        condition=condition,
        reason=reason,
        reason_user=(user or CONTROLLER) if is_new else before.reason_user,
        reason_since=tx.now.wall if is_new else before.reason_since,
        boot=before.boot if boot is None else boot,
        strays=before.strays if strays is None else strays,
        real=before.real if real is None else real,
    )
    if after == before:
        return
    if before.real is not None and after.real != before.real:
        tx.log("warning", f"node {name} has {after.real}; before: {before.real}")
    tx.put("nodes", name, after)
    if has_changed:
        text = f"node {name} is {condition.value}" + (f": {reason}" if reason else "")
        tx.log("info" if condition is NodeCondition.UP else "warning", text)
    tx.request_plan()


def set_reason(tx: Transition, name: str, reason: str, user: str) -> None:
    """Store another reason of a node. Raises Conflict for a node that works."""
    if tx.state.nodes[name].condition is NodeCondition.UP:
        raise Conflict(
            f"node {name} works and has no reason", field="reason", remedy="add State=DRAIN"
        )
    tx.put_node(name, reason=reason, reason_user=user, reason_since=tx.now.wall)


def _compare(tx: Transition, node: str, runs: Iterable[RunStatus]) -> Iterator[Run]:
    """Record how far the runs of a node are, and end those that should have ended.

    Yields the runs there that no job has any more.
    """
    for seen in runs:
        record_change(tx, RunChanged(node, seen))
        if seen.state == "finished":
            continue
        job = _job(tx, node, seen.run)
        if job is None:
            tx.log("warning", f"node {node} has run {seen.run}, which is over: it is ended")
            yield seen.run
        run = None if job is None else job.run
        if run is None or run.end:
            reason = run.end if run is not None else ENDED_BY_CONTROLLER
            tx.send(node, EndJob(run=seen.run, reason=reason))


def _is_lost(seen: RunStatus) -> bool:
    """Return True for a run that ended with a boot: it is as if its node did not know it."""
    return seen.end is not None and seen.end.cause == "node_failure"


def _miss_run(tx: Transition, job: WlmJob, run: WlmRun, node: str, *, has_booted: bool) -> None:
    """Handle a run that a node does not know."""
    if run.end:
        clear_node(tx, job, node)
    elif not run.is_allowed:
        pass  # nothing was sent yet
    elif has_booted or job.state in BEGUN:
        # Without a boot the start may have passed the registration: only its end frees the node.
        lose_node(tx, job, node, is_clear=has_booted)
    else:
        # The start may have been lost with the controller, after it was stored.
        send_start_to(tx, job, run, node)


def record_change(tx: Transition, message: RunChanged) -> None:
    """Record how far a run is on a node. What goes wrong there drains the node."""
    node, seen = message
    if _is_lost(seen):
        return  # the registration says it too
    end, is_cleared = seen.end, seen.state == "finished"
    has_never_run = end is not None and end.cause in ("prolog", "launch")
    has_prolog_failed = is_cleared and end is not None and end.cause == "prolog"
    if has_prolog_failed:
        change_condition(tx, node, NodeEvent.DRAINED, "Prolog error")
    if seen.epilog_status:
        change_condition(tx, node, NodeEvent.DRAINED, "Epilog error")
    if seen.unkillable:
        pids = ",".join(map(str, seen.unkillable[:20]))
        change_condition(tx, node, NodeEvent.DRAINED, f"Kill task failed: pids {pids}")
    job = _job(tx, node, seen.run)
    run = None if job is None else job.run
    if job is None or run is None:
        if is_cleared:
            _drop_stray(tx, node, seen.run)
        return
    if end is not None and end.cause in _FAULTS and end.text and job.active_run is not None:
        run = msgspec.structs.replace(run, failure=end.text)
        job = tx.put_job(job, run=run)
    if has_never_run:
        if is_cleared and _may_fail_to_launch(job, run, node):
            fail_launch(tx, job, is_prolog=has_prolog_failed)
    elif end is not None and (node == run.batch_node or _ends_on_any_node(job, run, end)):
        _end(tx, job, run, node, end)
    elif node == run.batch_node and seen.state == "running":
        _begin(tx, job, run)
    job = tx.state.jobs[job.number]
    if is_cleared:
        clear_node(tx, job, node)
    elif seen.unkillable and job.active_run is None:
        lose_node(tx, job, node)


def _may_fail_to_launch(job: WlmJob, run: WlmRun, node: str) -> bool:
    """Return True if a run that did not start on a node is a failed launch of its job.

    Without a script it may have begun before that was known.
    """
    if job.state is JobState.CONFIGURING:
        return True
    ends_job = node == run.batch_node or not job.submission.no_kill
    return not job.submission.script and not run.end and ends_job


def _ends_on_any_node(job: WlmJob, run: WlmRun, end: RunOutcome) -> bool:
    """Return True for an end that ends the run although its batch node has not reported it."""
    if run.end:
        return False
    # Each node keeps the time limit itself, and the batch node need not be the first.
    # Only a signal ends the idle process that holds the run on a node without its script. That its
    # user can send, so it is no failure of the node, which would cost nothing.
    is_lost = end.cause in ("exit", "step_daemon_killed") and not job.submission.no_kill
    return is_lost or end.cause == "time_limit"


def _begin(tx: Transition, job: WlmJob, run: WlmRun) -> None:
    if job.state is JobState.CONFIGURING and run.is_allowed:
        # From here on its time limit counts.
        run = msgspec.structs.replace(run, started=tx.now)
        tx.move(job, JobEvent.BEGUN, run=run, launch_failures=0)
        for step in tx.state.steps_of(run.run):  # they have waited for it
            tx.put("steps", step.key, msgspec.structs.replace(step, started=tx.now))


def _end(tx: Transition, job: WlmJob, run: WlmRun, node: str, end: RunOutcome) -> None:
    """End a run by its script, unless its end is decided already. Its start may have got lost."""
    status = KILLED_STATUS if end.status is None else end.status
    if run.end in ENDED_BY_SIGNAL and run.started is not None:
        tx.put_run(job, run, status=status)
        return
    # The Prolog of another node may have ended long before that of the batch node.
    is_known = run.started is not None and node != run.batch_node
    _begin(tx, job, run)
    job = tx.state.jobs[job.number]
    if job.state in BEGUN and job.run is not None:
        run, ended = job.run, end_time(end, job.run.allocated, tx.now)
        began = later(ended.minus(round(end.elapsed_seconds)), run.allocated)
        if run.started is not None and (is_known or run.started.mono - began.mono <= DELAY_SECONDS):
            began = run.started
        job = tx.put_run(job, run, started=began)
        end_script(tx, job, status, cause=end.cause, ended=later(ended, began))


def _drop_stray(tx: Transition, node: str, run: Run) -> None:
    """Let a node forget a run that it was taken from, when nothing is left of it."""
    tx.send(node, ForgetRun(run=run))
    status = tx.state.nodes.get(node)
    if status is not None and run in status.strays:
        tx.put_node(node, strays=tuple(other for other in status.strays if other != run))
        tx.request_plan()


def silence(tx: Transition, message: NodeSilent) -> None:
    """Mark a node as not responding, and take it from its jobs."""
    if message.node not in tx.state.nodes:
        return
    change_condition(tx, message.node, NodeEvent.SILENT, _NOT_RESPONDING)
    for job in tx.state.jobs_on(message.node):
        lose_node(tx, job, message.node)


def _job(tx: Transition, node: str, run: Run) -> WlmJob | None:
    """Return the job that has this run on this node."""
    job = tx.state.job_of(run)
    return job if job is not None and job.run is not None and node in job.run.left else None
