"""JSON of squeue, sinfo and scontrol show, in the shape of Slurm 24.11, with the fields of the
tables in text. States are lists of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.json_values import (
    Fields,
    document,
    exit_code,
    fields_of,
    limit,
    number,
    same,
    text,
    words,
)
from fairbank.report.slurm.notation import NODE_SIGNS


def _partition_limit(seconds: int | None) -> dict[str, Any]:
    return limit(NO_LIMIT if seconds is None else seconds)


def _count_or_infinite(value: int | None) -> dict[str, Any]:
    return number(value, is_infinite=value is None)


JOB: Fields = {
    "account": ("account", text),
    "accrue_time": ("accrued", number),
    "admin_comment": ("admin_comment", text),
    "system_comment": ("system_comment", text),
    "allocating_node": ("submit_host", text),
    "array_job_id": ("array_job", number),
    "array_task_id": ("task", number),
    "array_max_tasks": ("throttle", number),
    "array_task_string": ("tasks_left", text),
    "batch_flag": ("is_batch", same),
    "batch_host": ("batch_host", text),
    "command": ("command", text),
    "comment": ("comment", text),
    "contiguous": ("contiguous", same),
    "cpus_per_task": ("cpus_per_task", number),
    "current_working_directory": ("work_dir", text),
    "dependency": ("dependency", text),
    "derived_exit_code": ("derived_exit_code", exit_code),
    "deadline": ("deadline", number),
    "eligible_time": ("eligible", number),
    "end_time": ("ends", number),
    "excluded_nodes": ("excluded_nodes", text),
    "exit_code": ("exit_code", exit_code),
    "extra": ("extra", text),
    "failed_node": ("failed_node", text),
    "features": ("features", text),
    "gres_detail": ("gres", words),
    "group_id": ("gid", same),
    "group_name": ("group", text),
    "job_id": ("job_id", same),
    "last_sched_evaluation": ("last_tried", number),
    "licenses": ("licenses", text),
    "mail_type": ("mail_type", words),
    "mail_user": ("mail_user", text),
    "max_cpus": ("most_cpus", number),
    "max_nodes": ("most_nodes", number),
    "minimum_cpus_per_node": ("least_cpus", number),
    "minimum_tmp_disk_per_node": ("least_tmp", number),
    "name": ("name", text),
    "nodes": ("nodes", text),
    "nice": ("nice", same),
    "tasks_per_node": ("tasks_per_node", number),
    "cpus": ("cpus", number),
    "node_count": ("node_count", number),
    "tasks": ("tasks", number),
    "partition": ("partition", text),
    "prefer": ("preferred_features", text),
    "preempt_time": ("preempted", number),
    "preemptable_time": ("preemptable", number),
    "pre_sus_time": ("seconds_before_suspension", number),
    "priority": ("priority", number),
    "qos": ("qos", text),
    "required_nodes": ("required_nodes", text),
    "requeue": ("requeue", same),
    "restart_cnt": ("restarts", same),
    "resv_name": ("reservation", text),
    "scheduled_nodes": ("planned_nodes", text),
    "shared": ("sharing", words),
    "standard_error": ("std_err", text),
    "standard_input": ("std_in", text),
    "standard_output": ("std_out", text),
    "start_time": ("started", number),
    "state_description": ("description", text),
    "state_reason": ("reason", text),
    "submit_time": ("submitted", number),
    "suspend_time": ("suspended", number),
    "time_limit": ("limit", limit),
    "time_minimum": ("least_limit", limit),
    "tres_alloc_str": ("allocated_tres", text),
    "cpus_per_tres": ("cpus_per_tres", text),
    "memory_per_tres": ("memory_per_tres", text),
    "tres_bind": ("tres_bind", text),
    "ntasks_per_tres": ("tasks_per_tres", number),
    "tres_per_job": ("tres_per_job", text),
    "tres_per_node": ("tres_per_node", text),
    "tres_per_socket": ("tres_per_socket", text),
    "tres_per_task": ("tres_per_task", text),
    "tres_req_str": ("requested_tres", text),
    "user_id": ("uid", same),
    "user_name": ("user", text),
    "wckey": ("wckey", text),
}
NODE: Fields = {
    "architecture": ("arch", text),
    "boards": ("boards", same),
    "boot_time": ("boot", number),
    "comment": ("comment", text),
    "cores": ("cores", same),
    "cpu_load": ("load", same),
    "free_mem": ("free_memory", number),
    "cpus": ("cpus", same),
    "effective_cpus": ("usable_cpus", same),
    "extra": ("extra", text),
    "features": ("features", words),
    "active_features": ("active_features", words),
    "gres": ("gres", text),
    "last_busy": ("last_busy", number),
    "name": ("name", text),
    "address": ("address", text),
    "hostname": ("host", text),
    "operating_system": ("system", text),
    "partitions": ("partitions", words),
    "port": ("port", lambda port: port or 0),
    "real_memory": ("memory", same),
    "reason": ("reason", text),
    "reason_changed_at": ("reason_time", number),
    "reason_set_by_user": ("reason_user", text),
    "reservation": ("reservation", text),
    "alloc_memory": ("allocated_memory", same),
    "alloc_cpus": ("allocated_cpus", same),
    "slurmd_start_time": ("daemon_start", number),
    "sockets": ("sockets", same),
    "state": ("state", lambda state: [word.rstrip(NODE_SIGNS) for word in state.split("+")]),
    "temporary_disk": ("tmp", same),
    "threads": ("threads", same),
    "tres": ("configured_tres", text),
    "tres_used": ("allocated_tres", text),
    "version": ("version", text),
    "weight": ("weight", same),
}
RESERVATION: Fields = {
    "accounts": ("accounts", text),
    "core_count": ("cores", same),
    "end_time": ("end", number),
    "features": ("features", text),
    "flags": ("flags", words),
    "groups": ("groups", text),
    "licenses": ("licenses", text),
    "name": ("name", text),
    "node_count": ("node_count", same),
    "node_list": ("nodes", text),
    "partition": ("partition", text),
    "start_time": ("start", number),
    "tres": ("tres", text),
    "users": ("users", text),
}


def jobs(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of squeue and scontrol show job; the rows have all fields of JobLine."""
    return document(
        "jobs",
        [
            fields_of(row, JOB)
            | {
                "association_id": 0,
                "job_state": [row.state, *([row.flag] if row.flag else [])],
                "memory_per_cpu": number(row.least_memory if row.memory_is_per_cpu else None),
                "memory_per_node": number(None if row.memory_is_per_cpu else row.least_memory),
            }
            for row in rows
        ],
        last_update=number(now),
    )


def nodes(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show node; the rows have all fields of NodeLine."""
    return document("nodes", [fields_of(row, NODE) for row in rows], last_update=number(now))


def partitions(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show partition; the rows have all fields of PartitionLine."""
    return document("partitions", [_partition(row) for row in rows], last_update=number(now))


def reservations(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show reservation."""
    objects = [fields_of(row, RESERVATION) for row in rows]
    return document("reservations", objects, last_update=number(now))


def _partition(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "nodes": {"configured": row.nodes, "total": row.total_nodes},
        "accounts": {"allowed": text(row.allowed_accounts), "deny": text(row.denied_accounts)},
        "groups": {"allowed": text(row.allowed_groups)},
        "qos": {
            "allowed": text(row.allowed_qos),
            "deny": text(row.denied_qos),
            "assigned": text(row.qos),
        },
        "cpus": {"total": row.total_cpus},
        "defaults": {
            "time": limit(row.default_time),
            "memory_per_cpu": text(row.memory_per_cpu),
            "partition_memory_per_node": number(row.memory_per_node),
            "partition_memory_per_cpu": number(row.memory_per_cpu),
        },
        "grace_time": row.grace_seconds,
        "maximums": {
            "cpus_per_node": _count_or_infinite(row.max_cpus_per_node),
            "nodes": _count_or_infinite(row.max_nodes),
            "time": _partition_limit(row.max_time),
            "partition_memory_per_cpu": number(row.max_memory_per_cpu),
            "partition_memory_per_node": number(row.max_memory_per_node),
        },
        "minimums": {"nodes": row.min_nodes},
        "partition": {"state": [row.state]},
        "priority": {"job_factor": row.factor, "tier": row.tier},
        "tres": {"billing_weights": text(row.weights), "configured": text(row.tres)},
    }


def node_groups(rows: Iterable[Any]) -> str:
    """Return the JSON of sinfo; the rows are groups of nodes."""
    return document("sinfo", [_node_group(row) for row in rows])


def _node_group(row: Any) -> dict[str, Any]:
    def spread(values: Sequence[int] | None) -> dict[str, int]:
        least, most = values or (0, 0)
        return {"minimum": least, "maximum": most}

    counted, processors = row.node_counts, row.cpu_counts
    return {
        "node": {"state": [row.state.rstrip(NODE_SIGNS)]},
        "nodes": {
            **counted._asdict(),
            "nodes": _words_of(row.nodes),
            "hostnames": _words_of(row.hosts),
            "addresses": _words_of(row.addresses),
        },
        "cpus": {
            **spread(row.cpus),
            **processors._asdict(),
            "load": {
                "minimum": spread(row.load)["minimum"],
                "maximum": spread(row.load)["maximum"],
            },
        },
        "sockets": spread(row.sockets),
        "cores": spread(row.cores),
        "threads": spread(row.threads),
        "disk": spread(row.tmp),
        "memory": {**spread(row.memory), "allocated": row.allocated_memory},
        "weight": spread(row.weight),
        "features": {"total": text(row.features), "active": text(row.active_features)},
        "gres": {"total": text(row.gres), "used": text(row.gres_used)},
        "cluster": text(row.cluster),
        "comment": text(row.comment),
        "extra": text(row.extra),
        "reason": {
            "description": row.reason,
            "time": number(row.reason_time),
            "user": text(row.reason_user),
        },
        "reservation": row.reservation,
        "partition": _partition(row.partition),
    }


def _words_of(hosts: str) -> list[str]:
    return [hosts] if hosts else []
