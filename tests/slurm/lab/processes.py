"""Processes of the host: start one that outlives this process, find it again by its id and start
time, and end those of one cluster.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.lab.place import BASE, MARK, Place
from tests.support.conditions import wait_until

PROC = Path("/proc")
# setsid forks and returns at once. The shell prints its process id, which becomes the daemon's, and
# then writes to the log.
LAUNCH = ("setsid", "--fork", "sh", "-c", 'echo $$; exec "$@" >>"$0" 2>&1')
TITLED = (b"slurmstepd", b"slurmscriptd", b"slurmctld")


@dataclass(frozen=True)
class Process:
    """Process by number and start time, so that a reused number is not taken for it."""

    pid: int
    started: str

    @classmethod
    def numbered(cls, pid: int) -> Process | None:
        """Return the process that has the number now; None if there is none, or only a zombie."""
        fields = _fields(pid)
        return None if fields is None or fields[0] in "ZX" else cls(pid, fields[19])

    @property
    def command(self) -> bytes:
        """Return the command line or the process title; if both are empty, the name of the
        program.
        """
        return (
            _read(self.pid, "cmdline").replace(b"\0", b" ").strip()
            or _read(self.pid, "comm").strip()
        )

    @property
    def is_lab_process(self) -> bool:
        """Return True if the process was started in a cluster; a shell from `su alice` was not."""
        return any(
            variable.startswith(f"{MARK}={BASE}/".encode()) for variable in _environment(self.pid)
        )

    @property
    def running(self) -> bool:
        return Process.numbered(self.pid) == self

    def send(self, number: int) -> None:
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, number: int, seconds: float) -> None:
        """Send the signal, wait until the process has ended, and use SIGKILL after the timeout."""
        self.send(number)
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not self.running, f"process {self.pid} to end", seconds=seconds)
        self.send(signal.SIGKILL)
        wait_until(lambda: not self.running, f"process {self.pid} to be killed")


def launch(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    *,
    uid: int,
    gid: int,
) -> Process | None:
    """Start a daemon that outlives this process; return None if it has ended already. The log must
    be writable for the user.
    """
    process = subprocess.run(
        [*LAUNCH, str(log), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        cwd=folder,
        env=dict(environment),
        user=uid,
        group=gid,
        extra_groups=[],
    )
    return Process.numbered(int(process.stdout))


def cluster_processes(place: Place) -> list[Process]:
    """Return every process of the cluster: daemons, steps, jobs and running commands, but not an
    interactive shell in its directory.
    """
    mark = f"{MARK}={place.folder}".encode()
    parents = dict(_parents())
    ours = {pid for pid in parents if mark in _environment(pid) or _is_titled(pid, place)}
    while more := {pid for pid, parent in parents.items() if parent in ours and pid not in ours}:
        ours |= more
    ours.discard(os.getpid())
    return [process for pid in sorted(ours) if (process := Process.numbered(pid))]


def processes_of(uid: int) -> list[Process]:
    """Return the processes that have this user, or could take it again, without zombies."""
    return [
        process
        for pid, _ in _parents()
        if str(uid) in _users(pid) and (process := Process.numbered(pid))
    ]


def end_cluster_processes(place: Place) -> None:
    """Send SIGKILL to all of them until none is left: a dying daemon may have just started a
    child.
    """

    def none_left() -> bool:
        left = cluster_processes(place)
        for process in left:
            process.send(signal.SIGKILL)
        return not left

    wait_until(none_left, f"the processes of {place.folder} to end")


def _is_titled(pid: int, place: Place) -> bool:
    """Return True for a process of Slurm that writes its title over its environment and holds a log
    of the cluster open.
    """
    if not _read(pid, "comm").startswith(TITLED):
        return False
    folder = f"{place.folder}/"
    with contextlib.suppress(OSError):
        return any(
            str(entry.readlink()).startswith(folder) for entry in (PROC / str(pid) / "fd").iterdir()
        )
    return False


def _environment(pid: int) -> list[bytes]:
    return _read(pid, "environ").split(b"\0")


def _users(pid: int) -> list[str]:
    """Return the real, effective, saved and file system user."""
    lines = _read(pid, "status").decode(errors="replace").splitlines()
    return next((line.split()[1:] for line in lines if line.startswith("Uid:")), [])


def _parents() -> Iterator[tuple[int, int]]:
    """Return the parents of the processes of this host, or of this isolated command. A host also
    sees the processes of isolated commands, under the same paths and users; they are left out.
    """
    here = _pid_namespace("self")
    for entry in PROC.iterdir():
        if (
            entry.name.isdigit()
            and (fields := _fields(int(entry.name)))
            and _pid_namespace(entry.name) == here
        ):
            yield int(entry.name), int(fields[1])


def _pid_namespace(pid: str) -> str:
    """Return the PID namespace of the process, as the kernel names it."""
    try:
        return str((PROC / pid / "ns" / "pid").readlink())
    except OSError:
        return ""


def _fields(pid: int) -> list[str] | None:
    """Return /proc/PID/stat from the state on: state, parent, ... and start time as the 20th."""
    stat = _read(pid, "stat").decode(errors="replace")
    return stat.rpartition(")")[2].split() or None


def _read(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
