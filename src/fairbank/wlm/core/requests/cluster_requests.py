"""Requests of operators about nodes, partitions and reservations. Running jobs go on."""

from __future__ import annotations

from msgspec.structs import replace

from fairbank.cluster.partition_rules import PartitionRules, PartitionState
from fairbank.core.errors import Conflict, InvalidInput
from fairbank.wlm.core.ends import lose_node, remove_reservation
from fairbank.wlm.core.events import (
    Caller,
    DeletePartition,
    DeleteReservation,
    SetReservation,
    UpdateNode,
    UpdatePartition,
)
from fairbank.wlm.core.node_messages import change_condition, set_reason
from fairbank.wlm.core.node_states import NodeEvent
from fairbank.wlm.core.requests.known_names import check_known
from fairbank.wlm.core.requests.rights import check_operator
from fairbank.wlm.core.timers import arm_reservations
from fairbank.wlm.core.transition import Transition

_NEED_REASON = frozenset({NodeEvent.DRAINED, NodeEvent.DOWN, NodeEvent.FAILED})


def update_node(tx: Transition, caller: Caller, body: UpdateNode) -> None:
    """Drain, resume or take down a node. Jobs on a node that goes down end as if it had failed."""
    check_operator(tx.state.settings, caller, "change nodes")
    check_known("node", body.node, tx.state.nodes)
    _change_fields(tx, body)
    if body.event is None:
        if body.reason:
            set_reason(tx, body.node, body.reason, caller.name)
        return
    if body.event in _NEED_REASON and not body.reason:
        raise InvalidInput(
            f"node {body.node} needs a reason", field="reason", remedy="add Reason=..."
        )
    change_condition(tx, body.node, body.event, body.reason, user=caller.name)
    if body.event in (NodeEvent.DOWN, NodeEvent.FUTURE):
        for job in tx.state.jobs_on(body.node):
            lose_node(tx, job, body.node)


def _change_fields(tx: Transition, body: UpdateNode) -> None:
    """Change what does not depend on the condition of a node."""
    fields = ("weight", "features", "comment", "extra")
    changes = {name: value for name in fields if (value := getattr(body, name)) is not None}
    if changes:
        # A bad value is refused before the row is changed.
        replace(tx.state.nodes[body.node], **changes).applied_to(tx.state.configured[body.node])
        tx.put_node(body.node, **changes)
        tx.request_plan()


def update_partition(tx: Transition, caller: Caller, body: UpdatePartition) -> None:
    """Create or change a partition. A new default partition replaces the other one."""
    check_operator(tx.state.settings, caller, "change partitions")
    tx.state.table.named(body.rules.nodes, field="nodes")
    for other in list(tx.state.partitions.values()) if body.rules.is_default else ():
        if other.is_default:
            _put_partition(tx, replace(other, is_default=False))
    _put_partition(tx, body.rules)
    tx.request_plan()


def _put_partition(tx: Transition, rules: PartitionRules) -> None:
    tx.put("partitions", rules.name, rules)
    for configured in tx.state.settings.partitions:
        if configured.name == rules.name:
            tx.put("partition_settings", rules.name, configured)


def settle_partitions(tx: Transition) -> None:
    """Let new settings of a partition replace what requests have changed of it, but its state.

    A partition that is no longer configured is deleted. One that a request has created loses nodes
    that are gone; without any node it is INACTIVE.
    """
    state = tx.state
    configured = {rules.name: rules for rules in state.settings.partitions}
    for name, rules in list(state.partitions.items()):
        before, now = state.partition_settings.get(name), configured.get(name)
        left = tuple(node for node in rules.nodes if node in state.configured)
        if now is not None:
            if (before or rules) != now or left != rules.nodes:
                _put_partition(tx, replace(now, state=rules.state))
        elif before is not None:
            tx.put("partitions", name, None)
            tx.put("partition_settings", name, None)
        elif left != rules.nodes:
            # A partition that names no node has all.
            rest = rules.state if left else PartitionState.INACTIVE
            tx.put("partitions", name, replace(rules, nodes=left, state=rest))
    defaults = [rules for rules in state.partitions.values() if rules.is_default]
    for rules in defaults if len(defaults) > 1 else ():
        if rules.name not in configured or not configured[rules.name].is_default:
            _put_partition(tx, replace(rules, is_default=False))


def set_reservation(tx: Transition, caller: Caller, body: SetReservation) -> None:
    """Create or change a reservation."""
    check_operator(tx.state.settings, caller, "create reservations")
    tx.state.table.named(body.reservation.nodes, field="nodes")
    tx.put("reservations", body.reservation.name, body.reservation)
    arm_reservations(tx)
    tx.request_plan()


def delete_reservation(tx: Transition, caller: Caller, body: DeleteReservation) -> None:
    """Delete a reservation that no running job uses."""
    check_operator(tx.state.settings, caller, "delete reservations")
    check_known("reservation", body.name, tx.state.reservations)
    for job in tx.state.jobs.values():
        if job.active_run is not None and job.request.reservation == body.name:
            raise Conflict(
                f"reservation {body.name} cannot be deleted: job {job.name} runs in it",
                field="reservation",
                remedy="cancel its jobs, or wait for their ends",
            )
    remove_reservation(tx, body.name)


def delete_partition(tx: Transition, caller: Caller, body: DeletePartition) -> None:
    """Delete a partition that a request created and that no job uses."""
    check_operator(tx.state.settings, caller, "delete partitions")
    check_known("partition", body.name, tx.state.partitions)
    if body.name in tx.state.configured_partitions:
        raise Conflict(
            f"partition {body.name} is configured",
            field="partition",
            remedy="take it out of wlm.toml, then: scontrol reconfigure",
        )
    for job in tx.state.jobs.values():
        if job.uses_partition(body.name):
            raise Conflict(
                f"partition {body.name} cannot be deleted: job {job.name} uses it",
                field="partition",
                remedy="cancel its jobs, or move them to another partition",
            )
    tx.put("partitions", body.name, None)
