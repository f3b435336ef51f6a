"""Requests of operators about nodes, partitions and reservations. Running jobs go on."""

from __future__ import annotations

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.wlm.core.ends import lose_node
from fairbank.wlm.core.events import (
    Caller,
    DeleteReservation,
    SetReservation,
    UpdateNode,
    UpdatePartition,
)
from fairbank.wlm.core.node_messages import change_condition
from fairbank.wlm.core.node_states import NodeEvent
from fairbank.wlm.core.requests.rights import check_operator
from fairbank.wlm.core.timers import arm_reservations
from fairbank.wlm.core.transition import Transition

_BY_ADMINISTRATORS = frozenset(
    {NodeEvent.DRAINED, NodeEvent.RESUMED, NodeEvent.DOWN, NodeEvent.FAILED, NodeEvent.FUTURE}
)
_NEED_REASON = frozenset({NodeEvent.DRAINED, NodeEvent.DOWN, NodeEvent.FAILED})


def update_node(tx: Transition, caller: Caller, body: UpdateNode) -> None:
    """Drain, resume or take down a node. Jobs on a node that goes down end as if it had failed."""
    check_operator(tx.state.settings, caller, "change nodes")
    if body.node not in tx.state.nodes:
        raise NotFound(
            f"there is no node {body.node!r}", field="node", remedy="sinfo -N lists the nodes"
        )
    if body.event not in _BY_ADMINISTRATORS:
        raise InvalidInput(
            f"{body.event.name} is not a state that can be set",
            field="state",
            remedy="one of DOWN, DRAIN, RESUME, UNDRAIN, FAIL, FUTURE, IDLE",
        )
    if body.event in _NEED_REASON and not body.reason:
        raise InvalidInput(
            f"node {body.node} needs a reason", field="reason", remedy="add Reason=..."
        )
    change_condition(tx, body.node, body.event, body.reason)
    if body.event in (NodeEvent.DOWN, NodeEvent.FUTURE):
        for job in tx.state.jobs_on(body.node):
            lose_node(tx, job, body.node)


def update_partition(tx: Transition, caller: Caller, body: UpdatePartition) -> None:
    """Create or change a partition."""
    check_operator(tx.state.settings, caller, "change partitions")
    tx.state.table.named(body.rules.nodes, field="nodes")
    tx.put("partitions", body.rules.name, body.rules)
    tx.request_plan()


def set_reservation(tx: Transition, caller: Caller, body: SetReservation) -> None:
    """Create or change a reservation."""
    check_operator(tx.state.settings, caller, "create reservations")
    tx.state.table.named(body.reservation.nodes, field="nodes")
    tx.put("reservations", body.reservation.name, body.reservation)
    arm_reservations(tx)
    tx.request_plan()


def delete_reservation(tx: Transition, caller: Caller, body: DeleteReservation) -> None:
    """Delete a reservation. Jobs that asked for it wait with the reason ReservationDeleted."""
    check_operator(tx.state.settings, caller, "delete reservations")
    if body.name not in tx.state.reservations:
        raise NotFound(
            f"there is no reservation {body.name!r}",
            field="reservation",
            remedy="scontrol show reservation lists them",
        )
    tx.put("reservations", body.name, None)
    tx.request_plan()
