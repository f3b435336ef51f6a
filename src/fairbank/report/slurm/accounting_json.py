"""JSON of sacct, in the shape of Slurm 24.11."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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


def _tres(text: str | None) -> list[dict[str, Any]]:
    """Return TRES with their counts; memory is in MiB."""
    rows = []
    for name, count in tres_counts(text).items():
        kind, _, rest = name.partition("/")
        rows.append({"type": kind, "name": rest, "id": 0, "count": count})
    return rows


def tres_counts(text: str | None) -> dict[str, int]:
    """Return the counts of TRES such as `cpu=4,mem=2G`; memory is in MiB."""
    pairs = (item.partition("=") for item in words(text))
    return {name: _count(count) for name, _, count in pairs}


def _count(text: str) -> int:
    """Return a count that may have a unit; MiB stay as they are."""
    units = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return int(float(number) * unit) if number else 0


ACCOUNTING: Fields = {
    "account": ("account", text),
    "cluster": ("cluster", text),
    "constraints": ("features", text),
    "derived_exit_code": ("derived_exit_code", exit_code),
    "exit_code": ("exit_code", exit_code),
    "extra": ("extra", text),
    "group": ("group", text),
    "job_id": ("job_id", same),
    "licenses": ("licenses", text),
    "name": ("name", text),
    "allocation_nodes": ("allocated_nodes", same),
    "nodes": ("shown_nodes", text),
    "partition": ("partition", text),
    "priority": ("priority", number),
    "qos": ("qos", text),
    "restart_cnt": ("restarts", lambda count: count or 0),
    "stderr": ("std_err", text),
    "stdin": ("std_in", text),
    "stdout": ("std_out", text),
    "submit_line": ("submit_line", text),
    "user": ("user", text),
    "working_directory": ("work_dir", text),
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
    return fields_of(row, ACCOUNTING) | {
        "array": {
            "job_id": int(array) if task else 0,
            "task_id": number(int(task) if task.isdigit() else None),
            "task": task,
        },
        "association": {"id": 0},
        "comment": {
            "administrator": text(row.admin_comment),
            "job": text(row.comment),
            "system": text(row.system_comment),
        },
        "failed_node": "",
        "flags": words(row.flags),
        "kill_request_user": "" if row.cancelled_by is None else str(row.cancelled_by),
        "required": {"CPUs": row.requested_cpus, "memory_per_node": number(row.requested_memory)},
        "reservation": {"id": 0, "name": text(row.reservation)},
        "state": {"current": [row.state], "reason": row.reason or "None"},
        "steps": [],
        "time": {
            "elapsed": row.elapsed,
            "eligible": row.eligible or 0,
            "end": row.ended or 0,
            "start": row.started or 0,
            "submission": row.submitted or 0,
            "suspended": row.suspended,
            "limit": limit(row.limit),
            "planned": number(row.planned),
            "system": _cpu_time(row.system_cpu),
            "total": _cpu_time(row.total_cpu),
            "user": _cpu_time(row.user_cpu),
        },
        "tres": {"allocated": _tres(row.allocated_tres), "requested": _tres(row.requested_tres)},
        "wckey": {"wckey": text(row.wckey), "flags": []},
    }


def _step(row: Any) -> dict[str, Any]:
    return {
        "step": {"id": row.full_number, "name": text(row.name)},
        "state": [row.state],
        "exit_code": exit_code(row.exit_code),
        "nodes": {"count": row.node_count, "range": row.nodes},
        "tasks": {"count": row.tasks or 0},
        "time": {
            "elapsed": row.elapsed,
            "start": number(row.started),
            "end": number(row.ended),
            "system": _cpu_time(row.system_cpu),
            "total": _cpu_time(row.total_cpu),
            "user": _cpu_time(row.user_cpu),
        },
        "tres": {"allocated": _tres(row.allocated_tres)},
    }


def _cpu_time(milliseconds: int | None) -> dict[str, int]:
    seconds, rest = divmod(milliseconds or 0, 1000)
    return {"seconds": seconds, "microseconds": rest * 1000}
