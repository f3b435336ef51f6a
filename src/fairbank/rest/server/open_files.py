"""Number of connections that the limit of open files allows."""

from __future__ import annotations

import re
import resource
import socket
from pathlib import Path

from fairbank.core.errors import Conflict
from fairbank.rest.auth.peers import peer_at

# Over the Unix socket, and as many over TCP. Idle connections count too, and cost little.
CONNECTIONS_MAX = 2_048
OTHER_FILES = 128  # of the store and the log, and of connections that are being rejected
ENOUGH = 2 * CONNECTIONS_MAX + OTHER_FILES


def raise_limit() -> int:
    """Raise this process's soft limit of open files to the hard one, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def connections_max(files: int) -> int:
    """Return the maximum of connections per listener for a limit of open files."""
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS_MAX
    return max(1, min(CONNECTIONS_MAX, (files - OTHER_FILES) // 2))


def shortage(files: int) -> Conflict | None:
    """Return what a limit of open files does not allow; None if it is enough."""
    if (allowed := connections_max(files)) == CONNECTIONS_MAX:
        return None
    return Conflict(
        f"{files} open files allow only {allowed} connection{'s' * (allowed > 1)} over the Unix"
        " socket and over TCP each",
        field="LimitNOFILE",
        remedy=(
            f"LimitNOFILE={2 * ENOUGH} in the server's unit, or `ulimit -Hn {2 * ENOUGH}`"
            " before it starts"
        ),
    )


def demand_enough(path: Path) -> None:
    """Check the limit of open files of the server that listens at `path`, if one does.

    Raises:
        Conflict: the limit is lower than the server needs.
    """
    line = re.search(r"^Max open files +(\d+)", _limits_of(path), re.MULTILINE)
    if line and (low := shortage(int(line[1]))):
        raise low


def _limits_of(path: Path) -> str:
    """Return the kernel's limits of the process that listens at `path`."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            probe.connect(str(path))
            listener = peer_at(probe)
        return "" if listener is None else Path(f"/proc/{listener.pid}/limits").read_text()
    except OSError:
        return ""
