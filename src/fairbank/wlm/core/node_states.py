"""Conditions of a node apart from its jobs, and the table of their transitions.

A condition is unknown until the node registers. It survives a restart of the controller. Pairs that
are not in the table change nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum, auto

from fairbank.cluster.node import NodeState


class NodeCondition(Enum):
    """Condition of a node. The value is Slurm's state; `*`: it does not respond."""

    UNKNOWN = "UNKNOWN"
    UP = "UP"
    DRAIN = "DRAIN"
    DRAIN_SILENT = "DRAIN*"
    DOWN = "DOWN"
    SILENT = "DOWN*"
    FAIL = "FAIL"
    FUTURE = "FUTURE"

    @property
    def state(self) -> NodeState:
        """State as scheduling sees it."""
        return _STATES[self]


class NodeEvent(Enum):
    """Event of a node. ReturnToService decides between REGISTERED and RETURNED."""

    REGISTERED = auto()
    RETURNED = auto()  # registered, and it may leave DOWN by itself
    LACKING = auto()  # registered with less than is configured
    SILENT = auto()
    # Administrators, or the controller when processes or a prolog make the node unusable.
    DRAINED = auto()
    RESUMED = auto()
    DOWN = auto()
    FAILED = auto()
    FUTURE = auto()


N, E = NodeCondition, NodeEvent
_STATES = {
    N.UNKNOWN: NodeState.NOT_RESPONDING,
    N.UP: NodeState.UP,
    N.DRAIN: NodeState.DRAINED,
    N.DRAIN_SILENT: NodeState.DRAINED,
    N.DOWN: NodeState.DOWN,
    N.SILENT: NodeState.NOT_RESPONDING,
    N.FAIL: NodeState.FAILED,
    N.FUTURE: NodeState.FUTURE,
}
_ALL = frozenset(N) - {N.FUTURE}  # a FUTURE node does not exist for anything but an administrator

ROWS: Sequence[tuple[Collection[NodeCondition], NodeEvent, NodeCondition]] = (
    ({N.UNKNOWN}, E.REGISTERED, N.UP),
    ({N.SILENT}, E.REGISTERED, N.DOWN),  # it responds, and waits for an administrator
    ({N.UNKNOWN, N.SILENT, N.DOWN}, E.RETURNED, N.UP),
    ({N.DRAIN_SILENT}, E.REGISTERED, N.DRAIN),
    ({N.DRAIN_SILENT}, E.RETURNED, N.DRAIN),
    ({N.UNKNOWN, N.UP, N.SILENT}, E.LACKING, N.DOWN),
    ({N.DRAIN_SILENT}, E.LACKING, N.DRAIN),  # it gets no jobs, and keeps the reason of its drain
    ({N.UNKNOWN, N.UP, N.DOWN, N.FAIL}, E.SILENT, N.SILENT),
    ({N.DRAIN}, E.SILENT, N.DRAIN_SILENT),
    ({N.UP, N.DOWN, N.FAIL}, E.DRAINED, N.DRAIN),
    ({N.UNKNOWN, N.SILENT}, E.DRAINED, N.DRAIN_SILENT),
    ({N.DRAIN, N.DOWN, N.FAIL}, E.RESUMED, N.UP),
    ({N.DRAIN_SILENT, N.SILENT, N.FUTURE}, E.RESUMED, N.UNKNOWN),
    (_ALL - {N.SILENT, N.DRAIN_SILENT}, E.DOWN, N.DOWN),
    ({N.DRAIN_SILENT}, E.DOWN, N.SILENT),
    ({N.UP, N.DRAIN, N.DOWN}, E.FAILED, N.FAIL),
    (_ALL, E.FUTURE, N.FUTURE),
)
TRANSITIONS = {(before, event): after for states, event, after in ROWS for before in states}


def next_condition(condition: NodeCondition, event: NodeEvent) -> NodeCondition:
    """Return the condition after an event; the same if the event changes nothing."""
    return TRANSITIONS.get((condition, event), condition)
