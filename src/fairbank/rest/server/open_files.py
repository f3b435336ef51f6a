"""Number of connections that the limit of open files allows."""

from __future__ import annotations

import re
import resource
import socket
from pathlib import Path
from typing import NamedTuple

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


class ServerProcess(NamedTuple):
    """Process of a server, and its limit of open files."""

    number: int
    files: int

    def demand_enough(self) -> None:
        """Raise Conflict if the limit is lower than the server needs."""
        if low := shortage(self.files):
            raise low


def server_process(path: Path) -> ServerProcess | None:
    """Return the process that listens at `path`; None if none does, or its limit is unknown."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            probe.connect(str(path))
            listener = peer_at(probe)
        limits = "" if listener is None else Path(f"/proc/{listener.pid}/limits").read_text()
    except OSError:
        return None
    line = re.search(r"^Max open files +(\d+|unlimited)", limits, re.MULTILINE)
    if listener is None or line is None:
        return None
    files = resource.RLIM_INFINITY if line[1] == "unlimited" else int(line[1])
    return ServerProcess(listener.pid, files)
