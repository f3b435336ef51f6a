"""Requests as sdiag lists them: by type of message, and by user.

The types are Slurm's, with its numbers. A request that Slurm does not have has the number 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MESSAGE_TYPES: Mapping[str, tuple[str, int]] = {
    "ping": ("REQUEST_PING", 1008),
    "reconfigure": ("REQUEST_RECONFIGURE", 1003),
    "shutdown": ("REQUEST_SHUTDOWN", 1005),
    "set-debug": ("REQUEST_SET_DEBUG_LEVEL", 1010),
    "rows licenses": ("REQUEST_LICENSE_INFO", 1021),
    "config": ("REQUEST_BUILD_INFO", 2001),
    "rows jobs": ("REQUEST_JOB_INFO", 2003),
    "rows nodes": ("REQUEST_NODE_INFO", 2007),
    "rows partitions": ("REQUEST_PARTITION_INFO", 2009),
    "rows shares": ("REQUEST_SHARE_INFO", 2022),
    "rows reservations": ("REQUEST_RESERVATION_INFO", 2024),
    "rows priorities": ("REQUEST_PRIORITY_FACTORS", 2026),
    "statistics": ("REQUEST_STATS_INFO", 2035),
    "script": ("REQUEST_BATCH_SCRIPT", 2051),
    "hold": ("REQUEST_UPDATE_JOB", 3001),
    "uhold": ("REQUEST_UPDATE_JOB", 3001),
    "release": ("REQUEST_UPDATE_JOB", 3001),
    "update-job": ("REQUEST_UPDATE_JOB", 3001),
    "update-node": ("REQUEST_UPDATE_NODE", 3002),
    "create partition": ("REQUEST_CREATE_PARTITION", 3003),
    "delete partition": ("REQUEST_DELETE_PARTITION", 3004),
    "update partition": ("REQUEST_UPDATE_PARTITION", 3005),
    "create reservation": ("REQUEST_CREATE_RESERVATION", 3006),
    "delete reservation": ("REQUEST_DELETE_RESERVATION", 3008),
    "update reservation": ("REQUEST_UPDATE_RESERVATION", 3009),
    "submit": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "notify": ("REQUEST_JOB_NOTIFY", 4022),
    "requeue": ("REQUEST_JOB_REQUEUE", 5023),
    "cancel": ("REQUEST_KILL_JOB", 5032),
    "top": ("REQUEST_TOP_JOB", 5038),
}
"""Slurm's message of each kind of request; kinds with several objects have the object, too."""


def message_type(kind: str) -> tuple[str, int]:
    """Return the name and the number of a kind of request."""
    other = kind.removeprefix("rows ").upper().replace("-", "_")
    return MESSAGE_TYPES.get(kind, (f"REQUEST_{other}", 0))


def request_text(figures: Mapping[str, Any]) -> str:
    """Return the part of sdiag's text on requests, the most frequent first.

    Args:
        figures: `rpcs_by_message_type` and `rpcs_by_user` with the fields of sdiag's JSON; times
            are in microseconds.
    """
    types = [
        f"\t{row['message_type']:<40}({row['type_id']:5}) {_counts(row)}"
        for row in _by_count(figures.get("rpcs_by_message_type", ()))
    ]
    users = [
        f"\t{row['user']:<16}({row['user_id']:8}) {_counts(row)}"
        for row in _by_count(figures.get("rpcs_by_user", ()))
    ]
    return "\n".join(
        [
            "",
            "Remote Procedure Call statistics by message type",
            *types,
            "",
            "Remote Procedure Call statistics by user",
            *users,
            "",
            "Pending RPC statistics",
            "\tNo pending RPCs",
            "",
        ]
    )


def _by_count(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(rows, key=lambda row: -row["count"])


def _counts(row: Mapping[str, Any]) -> str:
    return (
        f"count:{row['count']:<6} ave_time:{row['average_time']:<6} total_time:{row['total_time']}"
    )
