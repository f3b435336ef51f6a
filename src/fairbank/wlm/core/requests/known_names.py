"""Errors for names of jobs, nodes, partitions and reservations that the cluster does not have."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from fairbank.core.errors import NotFound

Kind = Literal["job", "node", "partition", "reservation"]
# No list of what there is: PrivateData may hide it.
_REMEDIES = {"job": "squeue lists the jobs", "node": "sinfo -N lists the nodes"}


def unknown(kind: Kind, name: str | int) -> NotFound:
    """Return the error for a name that the cluster does not have."""
    shown = f"{name}"[:40] if kind == "job" else f"{f'{name}'[:40]!a}"
    remedy = _REMEDIES.get(kind, f"scontrol show {kind} lists them")
    return NotFound(f"there is no {kind} {shown}", field=kind, remedy=remedy)


def check_known(kind: Kind, name: str, known: Container[str]) -> None:
    """Raise NotFound unless a name is known."""
    if name not in known:
        raise unknown(kind, name)
