"""JSON of squeue, sinfo, sacct and scontrol show, in the shape of Slurm 24.11.

Numbers that may be missing are objects with `set`, `infinite` and `number`, states are lists of
words. There are the fields of the tables in text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairbank.report.slurm.job_rows import NO_LIMIT
from fairbank.report.slurm.notation import NODE_SIGNS

Form = Callable[[Any], Any]
Fields = Mapping[str, tuple[str, Form]]
"""Name in JSON: the field of the row, and its form."""


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _same(value: Any) -> Any:
    return value


def _number(value: int | None, *, is_infinite: bool = False) -> dict[str, Any]:
    is_set = value is not None and not is_infinite
    return {"set": is_set, "infinite": is_infinite, "number": value if is_set else 0}


def _limit(seconds: int | str | None) -> dict[str, Any]:
    """Return a time limit in minutes."""
    if isinstance(seconds, str) or seconds is None:
        return _number(None)
    return _number(-(-seconds // 60), is_infinite=seconds == NO_LIMIT)


def _partition_limit(seconds: int | None) -> dict[str, Any]:
    return _limit(NO_LIMIT if seconds is None else seconds)


def _count_or_infinite(value: int | None) -> dict[str, Any]:
    return _number(value, is_infinite=value is None)


def _exit(code: Sequence[int] | None) -> dict[str, Any]:
    status, signal = code or (0, 0)
    word = "SIGNALED" if signal else "SUCCESS" if status == 0 else "ERROR"
    return {
        "status": [word],
        "return_code": _number(None if code is None else status),
        "signal": {"id": _number(signal or None), "name": ""},
    }


def _words(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _tres(text: str | None) -> list[dict[str, Any]]:
    """Return TRES with their counts; memory is in MiB."""
    rows = []
    for name, count in tres_counts(text).items():
        kind, _, rest = name.partition("/")
        rows.append({"type": kind, "name": rest, "id": 0, "count": count})
    return rows


def tres_counts(text: str | None) -> dict[str, int]:
    """Return the counts of TRES such as `cpu=4,mem=2G`; memory is in MiB."""
    pairs = (item.partition("=") for item in _words(text))
    return {name: _count(count) for name, _, count in pairs}


def _count(text: str) -> int:
    """Return a count that may have a unit; MiB stay as they are."""
    units = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return int(float(number) * unit) if number else 0


JOB: Fields = {
    "account": ("account", _text),
    "accrue_time": ("accrued", _number),
    "admin_comment": ("admin_comment", _text),
    "allocating_node": ("submit_host", _text),
    "array_job_id": ("array_job", _number),
    "array_task_id": ("task", _number),
    "array_max_tasks": ("throttle", _number),
    "array_task_string": ("tasks_left", _text),
    "association_id": ("association", _same),
    "batch_flag": ("is_batch", _same),
    "batch_host": ("batch_host", _text),
    "command": ("command", _text),
    "comment": ("comment", _text),
    "contiguous": ("contiguous", _same),
    "cpus_per_task": ("cpus_per_task", _number),
    "current_working_directory": ("work_dir", _text),
    "dependency": ("dependency", _text),
    "derived_exit_code": ("derived_exit_code", _exit),
    "deadline": ("deadline", _number),
    "eligible_time": ("eligible", _number),
    "end_time": ("ends", _number),
    "excluded_nodes": ("excluded_nodes", _text),
    "exit_code": ("exit_code", _exit),
    "extra": ("extra", _text),
    "failed_node": ("failed_node", _text),
    "features": ("features", _text),
    "gres_detail": ("gres", _words),
    "group_id": ("gid", _same),
    "group_name": ("group", _text),
    "job_id": ("job_id", _same),
    "last_sched_evaluation": ("last_tried", _number),
    "licenses": ("licenses", _text),
    "mail_type": ("mail_type", _words),
    "mail_user": ("mail_user", _text),
    "max_cpus": ("most_cpus", _number),
    "max_nodes": ("most_nodes", _number),
    "minimum_cpus_per_node": ("least_cpus", _number),
    "minimum_tmp_disk_per_node": ("least_tmp", _number),
    "name": ("name", _text),
    "nodes": ("nodes", _text),
    "nice": ("nice", _same),
    "tasks_per_node": ("tasks_per_node", _number),
    "cpus": ("cpus", _number),
    "node_count": ("node_count", _number),
    "tasks": ("tasks", _number),
    "partition": ("partition", _text),
    "prefer": ("preferred_features", _text),
    "preempt_time": ("preempted", _number),
    "preemptable_time": ("preemptable", _number),
    "pre_sus_time": ("seconds_before_suspension", _number),
    "priority": ("priority", _number),
    "qos": ("qos", _text),
    "required_nodes": ("required_nodes", _text),
    "requeue": ("requeue", _same),
    "restart_cnt": ("restarts", _same),
    "resv_name": ("reservation", _text),
    "scheduled_nodes": ("planned_nodes", _text),
    "shared": ("sharing", _words),
    "standard_error": ("std_err", _text),
    "standard_input": ("std_in", _text),
    "standard_output": ("std_out", _text),
    "start_time": ("started", _number),
    "state_description": ("description", _text),
    "state_reason": ("reason", _text),
    "submit_time": ("submitted", _number),
    "suspend_time": ("suspended", _number),
    "time_limit": ("limit", _limit),
    "time_minimum": ("least_limit", _limit),
    "tres_alloc_str": ("allocated_tres", _text),
    "tres_per_job": ("tres_per_job", _text),
    "tres_per_node": ("tres_per_node", _text),
    "tres_per_socket": ("tres_per_socket", _text),
    "tres_per_task": ("tres_per_task", _text),
    "tres_req_str": ("requested_tres", _text),
    "user_id": ("uid", _same),
    "user_name": ("user", _text),
    "wckey": ("wckey", _text),
}
NODE: Fields = {
    "architecture": ("arch", _text),
    "boards": ("boards", _same),
    "boot_time": ("boot", _number),
    "comment": ("comment", _text),
    "cores": ("cores", _same),
    "cpu_load": ("load", _same),
    "free_mem": ("free_memory", _number),
    "cpus": ("cpus", _same),
    "effective_cpus": ("usable_cpus", _same),
    "extra": ("extra", _text),
    "features": ("features", _words),
    "active_features": ("active_features", _words),
    "gres": ("gres", _text),
    "last_busy": ("last_busy", _number),
    "name": ("name", _text),
    "address": ("address", _text),
    "hostname": ("host", _text),
    "operating_system": ("system", _text),
    "partitions": ("partitions", _words),
    "port": ("port", lambda port: port or 0),
    "real_memory": ("memory", _same),
    "reason": ("reason", _text),
    "reason_changed_at": ("reason_time", _number),
    "reason_set_by_user": ("reason_user", _text),
    "reservation": ("reservation", _text),
    "alloc_memory": ("allocated_memory", _same),
    "alloc_cpus": ("allocated_cpus", _same),
    "slurmd_start_time": ("daemon_start", _number),
    "sockets": ("sockets", _same),
    "state": ("state", lambda state: [word.rstrip(NODE_SIGNS) for word in state.split("+")]),
    "temporary_disk": ("tmp", _same),
    "threads": ("threads", _same),
    "tres": ("configured_tres", _text),
    "tres_used": ("allocated_tres", _text),
    "version": ("version", _text),
    "weight": ("weight", _same),
}
RESERVATION: Fields = {
    "accounts": ("accounts", _text),
    "core_count": ("cores", _same),
    "end_time": ("end", _number),
    "features": ("features", _text),
    "flags": ("flags", _words),
    "groups": ("groups", _text),
    "licenses": ("licenses", _text),
    "name": ("name", _text),
    "node_count": ("node_count", _same),
    "node_list": ("nodes", _text),
    "partition": ("partition", _text),
    "start_time": ("start", _number),
    "tres": ("tres", _text),
    "users": ("users", _text),
}


def _object(row: Any, fields: Fields) -> dict[str, Any]:
    return {name: form(getattr(row, field)) for name, (field, form) in fields.items()}


def document(key: str, rows: Sequence[Any], **others: Any) -> str:
    """Return the JSON of a command.

    Args:
        key: name of the list.
        rows: its items.
        others: values beside it.
    """
    meta = {
        "plugin": {"type": "", "name": "", "data_parser": "", "accounting_storage": ""},
        "slurm": {"version": {"major": "24", "micro": "0", "minor": "11"}, "release": "24.11.0"},
    }
    return json.dumps({key: rows, **others, "meta": meta, "errors": [], "warnings": []}, indent=2)


def jobs(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of squeue and scontrol show job.

    Args:
        rows: rows with all fields of JobLine.
        now: time of the last change.
    """
    return document(
        "jobs",
        [
            _object(row, JOB)
            | {
                "job_state": [row.state, *([row.flag] if row.flag else [])],
                "memory_per_cpu": _number(row.least_memory if row.memory_is_per_cpu else None),
                "memory_per_node": _number(None if row.memory_is_per_cpu else row.least_memory),
            }
            for row in rows
        ],
        last_update=_number(now),
    )


def nodes(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show node; the rows have all fields of NodeLine."""
    return document("nodes", [_object(row, NODE) for row in rows], last_update=_number(now))


def partitions(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show partition; the rows have all fields of PartitionLine."""
    return document("partitions", [_partition(row) for row in rows], last_update=_number(now))


def reservations(rows: Iterable[Any], now: int) -> str:
    """Return the JSON of scontrol show reservation."""
    objects = [_object(row, RESERVATION) for row in rows]
    return document("reservations", objects, last_update=_number(now))


def _partition(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "nodes": {"configured": row.nodes, "total": row.total_nodes},
        "accounts": {"allowed": _text(row.allowed_accounts), "deny": _text(row.denied_accounts)},
        "groups": {"allowed": _text(row.allowed_groups)},
        "qos": {
            "allowed": _text(row.allowed_qos),
            "deny": _text(row.denied_qos),
            "assigned": _text(row.qos),
        },
        "cpus": {"total": row.total_cpus},
        "defaults": {
            "time": _limit(row.default_time),
            "memory_per_cpu": _text(row.memory_per_cpu),
            "partition_memory_per_node": _number(row.memory_per_node),
            "partition_memory_per_cpu": _number(row.memory_per_cpu),
        },
        "grace_time": row.grace_seconds,
        "maximums": {
            "cpus_per_node": _count_or_infinite(row.max_cpus_per_node),
            "nodes": _count_or_infinite(row.max_nodes),
            "time": _partition_limit(row.max_time),
            "partition_memory_per_cpu": _number(row.max_memory_per_cpu),
            "partition_memory_per_node": _number(row.max_memory_per_node),
        },
        "minimums": {"nodes": row.min_nodes},
        "partition": {"state": [row.state]},
        "priority": {"job_factor": row.factor, "tier": row.tier},
        "tres": {"billing_weights": _text(row.weights), "configured": _text(row.tres)},
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
        "features": {"total": _text(row.features), "active": _text(row.active_features)},
        "gres": {"total": _text(row.gres), "used": _text(row.gres_used)},
        "cluster": _text(row.cluster),
        "comment": _text(row.comment),
        "extra": _text(row.extra),
        "reason": {
            "description": row.reason,
            "time": _number(row.reason_time),
            "user": _text(row.reason_user),
        },
        "reservation": row.reservation,
        "partition": _partition(row.partition),
    }


def _words_of(hosts: str) -> list[str]:
    return [hosts] if hosts else []


ACCOUNTING: Fields = {
    "account": ("account", _text),
    "association": ("association", lambda number: {"id": number or 0}),
    "cluster": ("cluster", _text),
    "constraints": ("features", _text),
    "derived_exit_code": ("derived_exit_code", _exit),
    "exit_code": ("exit_code", _exit),
    "extra": ("extra", _text),
    "failed_node": ("failed_node", _text),
    "group": ("group", _text),
    "job_id": ("job_id", _same),
    "licenses": ("licenses", _text),
    "name": ("name", _text),
    "allocation_nodes": ("allocated_nodes", _same),
    "nodes": ("shown_nodes", _text),
    "partition": ("partition", _text),
    "priority": ("priority", _number),
    "qos": ("qos", _text),
    "restart_cnt": ("restarts", lambda count: count or 0),
    "stderr": ("std_err", _text),
    "stdin": ("std_in", _text),
    "stdout": ("std_out", _text),
    "submit_line": ("submit_line", _text),
    "user": ("user", _text),
    "working_directory": ("work_dir", _text),
}


def accounting(rows: Iterable[Any]) -> str:
    """Return the JSON of sacct; the rows have all fields of AccountingLine, steps after runs."""
    made: list[dict[str, Any]] = []
    for row in rows:
        if row.step and made:
            made[-1]["steps"].append(_step(row))
        else:
            made.append(_run(row))
    return document("jobs", made)


def _run(row: Any) -> dict[str, Any]:
    array, _, task = row.label.partition("_")
    return _object(row, ACCOUNTING) | {
        "array": {
            "job_id": int(array) if task else 0,
            "task_id": _number(int(task) if task.isdigit() else None),
            "task": task,
        },
        "comment": {"administrator": _text(row.admin_comment), "job": _text(row.comment)},
        "flags": _words(row.flags),
        "kill_request_user": "" if row.cancelled_by is None else str(row.cancelled_by),
        "required": {"CPUs": row.requested_cpus, "memory_per_node": _number(row.requested_memory)},
        "reservation": {"id": row.reservation_id or 0, "name": _text(row.reservation)},
        "state": {"current": [row.state], "reason": row.reason or "None"},
        "steps": [],
        "time": {
            "elapsed": row.elapsed,
            "eligible": row.eligible or 0,
            "end": row.ended or 0,
            "start": row.started or 0,
            "submission": row.submitted or 0,
            "suspended": row.suspended,
            "limit": _limit(row.limit),
            "planned": _number(row.planned),
            "system": _cpu_time(row.system_cpu),
            "total": _cpu_time(row.total_cpu),
            "user": _cpu_time(row.user_cpu),
        },
        "tres": {"allocated": _tres(row.allocated_tres), "requested": _tres(row.requested_tres)},
        "wckey": {"wckey": _text(row.wckey), "flags": []},
    }


def _step(row: Any) -> dict[str, Any]:
    return {
        "step": {"id": row.full_number, "name": _text(row.name)},
        "state": [row.state],
        "exit_code": _exit(row.exit_code),
        "nodes": {"count": row.node_count, "range": row.nodes},
        "tasks": {"count": row.tasks or 0},
        "time": {
            "elapsed": row.elapsed,
            "start": _number(row.started),
            "end": _number(row.ended),
            "system": _cpu_time(row.system_cpu),
            "total": _cpu_time(row.total_cpu),
            "user": _cpu_time(row.user_cpu),
        },
        "tres": {"allocated": _tres(row.allocated_tres)},
    }


def _cpu_time(milliseconds: int | None) -> dict[str, int]:
    seconds, rest = divmod(milliseconds or 0, 1000)
    return {"seconds": seconds, "microseconds": rest * 1000}
