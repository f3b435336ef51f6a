"""Messages of nodes as values of the core. Pure."""

from __future__ import annotations

from fairbank.cluster.node import Node
from fairbank.wlm.core.events import NodeRegistered, RunOnNode
from fairbank.wlm.protocol.messages import Registration, RunStatus

KILLED_STATUS = 9
"""Wait status of a script whose step daemon was killed: it was killed then, too. One that a request
kept from starting gets it as well.
"""


def registration_event(message: Registration) -> NodeRegistered:
    """Return the event of a registration."""
    return NodeRegistered(
        Node(
            name=message.node,
            cpus=max(message.cpus, 1),
            memory=max(message.memory, 1),
            tmp=max(message.tmp, 0),
        ),
        message.boot_id,
        tuple(run_on_node(status) for status in message.runs if not is_lost(status)),
        tuple(status.run for status in message.runs if is_lost(status)),
    )


def is_lost(status: RunStatus) -> bool:
    """Return True for a run that ended because its node was booted: the core must miss it there."""
    return status.end is not None and status.end.cause == "node_failure"


def run_on_node(status: RunStatus) -> RunOnNode:
    """Return how far a run is. One that was never started has failed when its epilog has ended."""
    run, end, is_over = status.run, status.end, status.state == "finished"
    if end is None:
        if status.state != "running":
            return RunOnNode(run, "starting")
        return RunOnNode(run, "running", unkillable=status.unkillable)
    has_epilog_failed = bool(status.epilog_status)
    if end.cause == "prolog" or end.cause == "launch":
        if not is_over:
            return RunOnNode(run, "starting")
        return RunOnNode(run, "cleared", failed=end.cause, has_epilog_failed=has_epilog_failed)
    return RunOnNode(
        run,
        "cleared" if is_over else "ended",
        KILLED_STATUS if end.status is None else end.status,
        is_late=end.cause == "time_limit",
        has_epilog_failed=has_epilog_failed,
    )
