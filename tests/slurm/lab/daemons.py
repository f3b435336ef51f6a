"""Daemons of a cluster, in the order in which they need each other: start, end and search."""

from __future__ import annotations

import contextlib
import pwd
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.slurm.lab.machine import NodeGroup, node_names
from tests.slurm.lab.packages import slurm_daemon
from tests.slurm.lab.place import Place
from tests.slurm.lab.processes import Process, launch
from tests.support.conditions import wait_until

STOP_SECONDS = 20
MUNGED, MARIADBD, SLURMDBD, SLURMCTLD = "munged", "mariadbd", "slurmdbd", "slurmctld"

# Small, and safe against kill -9 of the process, because the kernel keeps the written files. The
# data may not survive a power failure.
MARIADB_SETTINGS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-log-bin",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=OFF",
    "--innodb-lock-wait-timeout=900",
)


@dataclass(frozen=True)
class Daemon:
    """One daemon: its command, its user, and its address when it is ready (a socket file, or a port
    of this host).
    """

    name: str
    user: str
    command: tuple[str, ...]
    listens: Path | tuple[str, int]
    environment: tuple[tuple[str, str], ...] = field(default=())


def all_daemons(place: Place, machine: Sequence[NodeGroup]) -> Iterator[Daemon]:
    """Return all daemons in the order of their start."""
    yield munged(place)
    yield mariadbd(place)
    yield slurmdbd(place)
    yield slurmctld(place)
    for number, node in enumerate(node_names(machine)):
        yield slurmd(place, node, number)


def munged(place: Place) -> Daemon:
    names = {
        "key-file": "key",
        "log-file": "log",
        "pid-file": "pid",
        "seed-file": "seed",
        "socket": "socket",
    }
    options = [f"--{option}={place.munge / name}" for option, name in names.items()]
    return Daemon(
        MUNGED, "munge", ("/usr/sbin/munged", "--foreground", *options), place.munge / "socket"
    )


def mariadbd(place: Place) -> Daemon:
    files = (
        f"--datadir={place.mariadb}/data",
        f"--socket={place.mariadb}/socket",
        f"--pid-file={place.mariadb}/pid",
    )
    command = ("/usr/sbin/mariadbd", *MARIADB_SETTINGS, *files)
    return Daemon(
        MARIADBD, "slurm", command, place.mariadb / "socket", tuple(scratch(place).items())
    )


def scratch(place: Place) -> dict[str, str]:
    """Return the environment for MariaDB's temporary files. Two servers may not share a directory:
    each deletes the files of the other when it starts.
    """
    return {"TMPDIR": str(place.mariadb)}


def slurmdbd(place: Place) -> Daemon:
    environment = (("MYSQL_UNIX_PORT", f"{place.mariadb}/socket"),)
    return Daemon(
        SLURMDBD,
        "slurm",
        (slurm_daemon(SLURMDBD), "-D"),
        ("localhost", place.database_port),
        environment,
    )


def slurmctld(place: Place, *, forgetting: bool = False) -> Daemon:
    """Return the controller; `forgetting` starts it without saved jobs and nodes."""
    command = (f"{place.programs}/slurmctld", "-D", *(["-c"] if forgetting else []))
    return Daemon(SLURMCTLD, "slurm", command, (place.address, place.controller_port))


def slurmd(place: Place, node: str, number: int) -> Daemon:
    return Daemon(
        node,
        "root",
        (f"{place.programs}/slurmd", "-D", "-N", node),
        (place.address, place.node_port(number)),
    )


def pid_of(place: Place, name: str) -> Process | None:
    """Return the process id of the daemon, or None if it does not run."""
    try:
        pid, started = (place.pids / name).read_text().split()
    except FileNotFoundError:
        return None
    process = Process(int(pid), started)
    return process if process.running else None


def launch_daemon(place: Place, daemon: Daemon) -> None:
    """Start the daemon if it does not run, without waiting until it is ready. Raises RuntimeError
    if it ends at once.
    """
    if pid_of(place, daemon.name):
        return
    user = pwd.getpwnam(daemon.user)
    log = place.logs / f"{daemon.name}.output"
    environment = place.environment | dict(daemon.environment)
    process = launch(daemon.command, environment, place.logs, log, uid=user.pw_uid, gid=user.pw_gid)
    if process is None:
        raise _ended(place, daemon)
    (place.pids / daemon.name).write_text(f"{process.pid} {process.started}\n")


def await_daemon(place: Place, daemon: Daemon, seconds: float = 30) -> None:
    """Return when the daemon listens. Raises RuntimeError, with the end of its log, if it ends
    instead.
    """
    wait_until(
        lambda: is_listening(daemon.listens) or not pid_of(place, daemon.name),
        f"{daemon.name} to listen",
        seconds=seconds,
    )
    if not pid_of(place, daemon.name):
        raise _ended(place, daemon)


def end_daemons(place: Place, names: Sequence[str], number: int = signal.SIGTERM) -> None:
    """Send the signal to all of them and return when all have ended; after a timeout with
    SIGKILL.
    """
    processes = [process for name in names if (process := pid_of(place, name))]
    for process in processes:
        process.send(number)
    for process in processes:
        process.end(number, STOP_SECONDS)


def is_listening(address: Path | tuple[str, int]) -> bool:
    """Return True if a process listens there."""
    if isinstance(address, Path):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(address)) == 0
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=2):
        return True
    return False


def _ended(place: Place, daemon: Daemon) -> RuntimeError:
    logs = [
        place.logs / f"{daemon.name}.output",
        place.logs / f"{daemon.name}.log",
        place.logs / f"slurmd-{daemon.name}.log",
    ]
    last = "".join(log.read_text(errors="replace")[-1500:] for log in logs if log.exists())
    return RuntimeError(f"{daemon.name} ended at once:\n{last}")
