"""Nodes, partitions, reservations and licenses as sinfo and scontrol show them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from fairbank.cluster.node import Node, total_tres
from fairbank.cluster.partition_rules import AccessList, OverSubscribe
from fairbank.cluster.reservation import Reservation
from fairbank.core.gres import GPU
from fairbank.core.hostlist import compress
from fairbank.core.tres import Weights
from fairbank.core.units import exact_decimal
from fairbank.report.slurm.machine_rows import LicenseLine, NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.notation import licenses_text
from fairbank.wlm.controller.commands.gres_texts import gres_text, used_gres
from fairbank.wlm.controller.commands.job_lines import tres_text
from fairbank.wlm.core.jobs import Moment
from fairbank.wlm.core.node_states import NodeCondition as N
from fairbank.wlm.core.state import CoreState, NodeStatus
from fairbank.wlm.core.steps.gpus import gpu_types
from fairbank.wlm.protocol.messages import Registration

_MEBIBYTES = 1_024
_CONDITIONS = {
    N.UNKNOWN: ("UNKNOWN", "NOT_RESPONDING"),
    N.UP: (),
    N.DRAIN: ("DRAIN",),
    N.DRAIN_SILENT: ("DRAIN", "NOT_RESPONDING"),
    N.DOWN: ("DOWN",),
    N.SILENT: ("DOWN", "NOT_RESPONDING"),
    N.FAIL: ("FAIL",),
    N.FUTURE: ("FUTURE",),
}
_WITHOUT_JOBS = frozenset({N.UNKNOWN, N.DOWN, N.SILENT, N.FUTURE})
"""Conditions whose first word stands in place of what the jobs of the node make of it."""
RESERVATION_FLAGS = {
    "MAINT": "maintenance",
    "FLEX": "flexible",
    "ANY_NODES": "any_nodes",
    "IGNORE_JOBS": "ignores_jobs",
    "OVERLAP": "overlapping",
}


def node_lines(
    state: CoreState, now: Moment, registrations: Mapping[str, Registration]
) -> Iterator[NodeLine]:
    """Yield the lines of all nodes, in the order of the settings.

    `registrations` are what the nodes have registered last.
    """
    partitions = defaultdict[str, list[str]](list)
    for rules in state.partitions.values():
        for node in state.nodes_in(rules):
            partitions[node.name].append(rules.name)
    reserved: dict[str, Reservation] = {}
    for reservation in state.reservations.values():
        if reservation.is_active(now.wall):
            reserved.update(dict.fromkeys(reservation.nodes, reservation))
    planned = {name for start in state.expected_starts.values() for name in start.nodes}
    for name, node in state.configured.items():
        reservation_of = reserved.get(name)
        words = _extra_words(reservation_of, is_planned=name in planned)
        line = _node_line(state, node, words, ",".join(partitions[name]), reservation_of)
        registered = registrations.get(name)
        yield (
            line
            if registered is None
            else line._replace(
                arch=registered.machine,
                system=registered.system,
                version=registered.release,
                load=round(registered.load * 100),
                free_memory=registered.free_memory,
                boot=int(registered.boot_time),
                daemon_start=int(registered.started),
            )
        )


def _node_line(
    state: CoreState, node: Node, words: list[str], partitions: str, reservation: Reservation | None
) -> NodeLine:
    status = state.nodes[node.name]
    grants = [grant for _, grant in state.grants_on(node.name)]
    cpus, memory = sum(grant.cpus for grant in grants), sum(grant.memory for grant in grants)
    features = ",".join(sorted(node.features)) or None
    rule = state.settings.accounting.billing_rule
    gpus = sum(len(grant.binding.gpus) for grant in grants)
    configured = total_tres([node])
    del configured["node"]  # a node does not show it
    _, reason = status.state
    return NodeLine(
        name=node.name,
        state="+".join([*_state_words(state, node, status, cpus), *words]),
        sockets=node.sockets,
        cores=node.cores // node.sockets,
        threads=node.threads,
        cpus=node.cpus,
        usable_cpus=node.cpus,
        allocated_cpus=cpus,
        memory=node.memory,
        allocated_memory=memory,
        tmp=node.tmp,
        weight=node.weight,
        features=features,
        active_features=features,
        gres=gres_text(node.gpus),
        gres_used=used_gres(grants, gpu_types([node])[node.name]),
        address=node.name,
        host=node.name,
        partitions=partitions or None,
        configured_tres=tres_text(configured, None, rule),
        allocated_tres=tres_text({"cpu": cpus, "mem": memory, f"gres/{GPU}": gpus}, None, rule),
        comment=status.comment or None,
        extra=status.extra or None,
        reason=reason or None,
        reason_user=status.reason_user,
        reason_time=status.reason_since if reason else None,
        reservation=None if reservation is None else reservation.name,
    )


def _state_words(state: CoreState, node: Node, status: NodeStatus, cpus: int) -> Iterator[str]:
    words = list(_CONDITIONS[status.condition])
    if status.condition not in _WITHOUT_JOBS:
        jobs = state.jobs_on(node.name)
        yield "IDLE" if not cpus else "ALLOCATED" if cpus >= node.cpus else "MIXED"
        if any(job.state.is_completing for job in jobs) or status.strays:
            words.append("COMPLETING")
        if node.name not in state.registered and "NOT_RESPONDING" not in words:
            words.append("NOT_RESPONDING")  # its connection was lost: it gets no work
    yield from words


def _extra_words(reservation: Reservation | None, *, is_planned: bool) -> list[str]:
    if reservation is not None:
        return ["MAINT" if reservation.maintenance else "RESERVED"]
    return ["PLANNED"] if is_planned else []


def partition_lines(state: CoreState) -> Iterator[PartitionLine]:
    """Yield the lines of all partitions, in their order."""
    default_mode = state.settings.scheduling.preemption.mode.value
    for rules in state.partitions.values():
        nodes = state.nodes_in(rules)
        counts = total_tres(nodes)
        shares = rules.sharing in (OverSubscribe.YES, OverSubscribe.FORCE)
        yield PartitionLine(
            name=rules.name,
            nodes=compress(node.name for node in nodes),
            state=rules.state.value,
            is_default=rules.is_default,
            default_time=rules.default_seconds,
            max_time=rules.max_seconds,
            grace_seconds=rules.grace_seconds,
            min_nodes=rules.min_nodes,
            max_nodes=rules.max_nodes,
            max_cpus_per_node=rules.max_cpus_per_node,
            allowed_groups=_names(rules.groups, denied=False),
            allowed_accounts=_names(rules.accounts, denied=False),
            denied_accounts=_names(rules.accounts, denied=True),
            allowed_qos=_names(rules.qos, denied=False),
            denied_qos=_names(rules.qos, denied=True),
            submit_hosts=None if rules.submit_hosts is None else compress(rules.submit_hosts),
            qos=rules.partition_qos,
            root_only=rules.root_only,
            needs_reservation=rules.needs_reservation,
            sharing=f"{rules.sharing.value}:{rules.rows}" if shares else rules.sharing.value,
            tier=rules.tier,
            factor=rules.factor,
            preempt_mode=default_mode if rules.preempted is None else rules.preempted.value,
            total_cpus=counts["cpu"],
            total_nodes=len(nodes),
            memory_per_cpu=rules.memory_per_cpu,
            memory_per_node=rules.memory_per_node,
            max_memory_per_cpu=rules.max_memory_per_cpu,
            max_memory_per_node=rules.max_memory_per_node,
            tres=tres_text(counts, rules, state.settings.accounting.billing_rule),
            weights=None if rules.weights is None else weights_text(rules.weights),
        )


def _names(access: AccessList | None, *, denied: bool) -> str | None:
    return ",".join(access.names) if access is not None and access.denies is denied else None


def weights_text(weights: Weights) -> str:
    """Return billing weights as slurm.conf writes them, with memory by GiB."""
    return ",".join(
        f"{name}={exact_decimal(weight * _MEBIBYTES)}G"
        if name == "mem"
        else f"{name}={exact_decimal(weight)}"
        for name, weight in weights.items()
    )


def reservation_lines(state: CoreState, now: Moment) -> Iterator[ReservationLine]:
    """Yield the lines of the reservations that are not over, by name."""
    for name, reservation in sorted(state.reservations.items()):
        if reservation.is_over(now.wall):
            continue
        nodes = [state.configured[node] for node in reservation.nodes if node in state.configured]
        cpus = sum(node.cpus for node in nodes)
        yield ReservationLine(
            name=name,
            start=reservation.begin,
            end=reservation.end,
            nodes=compress(reservation.nodes),
            node_count=len(reservation.nodes),
            cores=sum(node.cores for node in nodes),
            features=reservation.features or None,
            partition=reservation.partition or None,
            flags=",".join(
                word for word, field in RESERVATION_FLAGS.items() if getattr(reservation, field)
            )
            or None,
            tres=f"cpu={cpus}",
            users=",".join(sorted(reservation.users)) or None,
            groups=",".join(sorted(reservation.groups)) or None,
            accounts=",".join(sorted(reservation.accounts)) or None,
            licenses=licenses_text(reservation.licenses),
            is_active=reservation.is_active(now.wall),
        )


def license_lines(state: CoreState, now: Moment) -> Iterator[LicenseLine]:
    """Yield the lines of all licenses, with what running jobs and reservations have of them."""
    used, reserved = Counter[str](), Counter[str]()
    for job in state.jobs.values():
        if job.active_run is not None:
            used.update(job.request.licenses)
    for reservation in state.reservations.values():
        if reservation.is_active(now.wall):
            reserved.update(reservation.licenses)
    for name, total in state.settings.scheduling.licenses.items():
        yield LicenseLine(name, total, used[name], reserved[name])
