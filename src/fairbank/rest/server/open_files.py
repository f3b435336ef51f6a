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


def demand_enough(path: Path) -> None:
    """Check the limit of open files of the server that listens at `path`, if one does.

    Raises:
        Conflict: the limit is lower than the server needs.
    """
    limits = _limits_of(path)
    line = re.search(r"^Max open files +(\d+)", limits, re.MULTILINE)
    if line and int(line[1]) < ENOUGH:
        raise Conflict(
            f"{line[1]} open files allow only {connections_max(int(line[1]))} connections over the"
            " Unix socket and over TCP each",
            remedy=(
                f"LimitNOFILE={2 * ENOUGH} in the server's unit, or `ulimit -Hn {2 * ENOUGH}`"
                " before it starts"
            ),
        )


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
