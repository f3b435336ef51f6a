"""How many connections the open files of this process allow."""

from __future__ import annotations

import re
import resource
import socket
from pathlib import Path

from fairbank.core.errors import Conflict
from fairbank.rest.sign_in.peers import peer_at

CONNECTIONS_MAX = (
    2_048  # over the Unix socket, and as many over TCP; idle ones count too, and cost little
)
OURS = 128  # files that are no connections: the store's, the logs', and those of whom we turn away
ENOUGH = 2 * CONNECTIONS_MAX + OURS


def raised() -> int:
    """The most files that this process may have open, after its soft limit was raised to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connections_max(files: int) -> int:
    """Of each way in, the connections that so many open files leave room for; RLIM_INFINITY is no bound."""
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, (files - OURS) // 2))


def demand_enough(path: Path) -> None:
    """Raises Conflict when the server that listens at `path` may open fewer files than it has use for. Says nothing where none listens."""
    limits = _limits_of(path)
    found = re.search(r"^Max open files +(\d+)", limits, re.MULTILINE)
    if found and int(found[1]) < ENOUGH:
        raise Conflict(
            f"{found[1]} allow only {connections_max(int(found[1]))} connections over the Unix socket and over TCP each",
            remedy=f"LimitNOFILE={2 * ENOUGH} in the server's unit, or `ulimit -Hn {2 * ENOUGH}` before it starts",
        )


def _limits_of(path: Path) -> str:
    """What the kernel says of the process that listens there."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            probe.connect(str(path))
            listener = peer_at(probe)
        return "" if listener is None else Path(f"/proc/{listener.pid}/limits").read_text()
    except OSError:
        return ""
