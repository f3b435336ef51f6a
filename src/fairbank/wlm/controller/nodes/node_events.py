"""Messages of nodes as events of the core. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairbank.cluster.node import Node
from fairbank.wlm.core.events import (
    NodeMessage,
    NodeRegistered,
    ProcessesLeft,
    RunCleared,
    RunOnNode,
    RunStarted,
    ScriptEnded,
    StartFailed,
)
from fairbank.wlm.protocol.messages import EndCause, Registration, RunOutcome, RunStatus

KILLED_STATUS = 9
"""Wait status of a script whose step daemon was killed: it was killed then, too."""
_NEVER_RAN: Sequence[EndCause] = ("prolog", "launch")


def status_events(node: str, status: RunStatus) -> Iterator[NodeMessage]:
    """Yield the events of a change of a run on a node."""
    run, end = status.run, status.end
    if status.unkillable:
        yield ProcessesLeft(node, run, status.unkillable)
    if status.state == "running":
        yield RunStarted(node, run)
    if end is None or is_lost(status):
        return
    if end.cause not in _NEVER_RAN:
        yield ScriptEnded(node, run, _wait_status(end), is_late=end.cause == "time_limit")
        if status.state == "finished":
            yield RunCleared(node, run, has_epilog_failed=bool(status.epilog_status))
    elif status.state == "finished":
        yield StartFailed(node, run, is_prolog=end.cause == "prolog")


def registration_events(message: Registration) -> Iterator[NodeMessage]:
    """Yield the events of a registration.

    A registration cannot say that a node must be drained: the events of the run come before it.
    """
    for status in message.runs:
        if status.unkillable or (status.epilog_status and not is_lost(status)):
            yield from status_events(message.node, status)
    runs = (_run_on_node(status) for status in message.runs if not is_lost(status))
    yield NodeRegistered(
        Node(
            name=message.node,
            cpus=max(message.cpus, 1),
            memory=max(message.memory, 1),
            tmp=max(message.tmp, 0),
        ),
        message.boot_id,
        tuple(runs),
    )


def is_lost(status: RunStatus) -> bool:
    """Return True for a run that ended because its node was booted: the core must miss it there."""
    return status.end is not None and status.end.cause == "node_failure"


def _run_on_node(status: RunStatus) -> RunOnNode:
    end = status.end
    if end is None:
        return RunOnNode(status.run, "running" if status.state == "running" else "starting")
    if end.cause in _NEVER_RAN:
        if status.state != "finished":
            return RunOnNode(status.run, "starting")
        return RunOnNode(
            status.run, "cleared", failed="prolog" if end.cause == "prolog" else "launch"
        )
    return RunOnNode(
        status.run,
        "cleared" if status.state == "finished" else "ended",
        _wait_status(end),
        end.cause == "time_limit",
    )


def _wait_status(end: RunOutcome) -> int:
    """Return the status of the script. One that a request kept from starting has none."""
    return KILLED_STATUS if end.status is None else end.status
