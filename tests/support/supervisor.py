"""Supervisor that starts a server for the tests and stops it when the tests have ended in any way.
A small process, the supervisor, is between the tests and the server. It has the reading end of a
pipe, which closes when the tests end, even by SIGKILL: then the supervisor stops the server and
removes its directory. The supervisor is the parent of the server and of all orphans of a killed
server, and ends only after them, so that a server may start again on its data.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Protocol

STOP_SECONDS = 20
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@dataclass(frozen=True)
class ProcessSpec:
    """Command to run, its user, and the signal that stops it. It is sent to the supervisor as JSON
    through a pipe, where ps does not show it.
    """

    command: list[str]
    environment: Mapping[str, str]
    folder: str
    log: str
    uid: int
    gid: int
    groups: list[int] | None
    stop_signal: int
    orphans_seconds: float = 0.0  # time for its children to end by themselves after the server

    @property
    def is_ours(self) -> bool:
        """Return True for a Python program of this environment, run by the user of the tests."""
        return (
            Path(self.command[0]).parent == Path(sys.executable).parent and self.uid == os.geteuid()
        )


class Supervisor(Protocol):
    """Process of a supervisor, with the members of Popen that are used."""

    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...


def _start_supervisor() -> Supervisor:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C is for the tests; the supervisor notices their end by the pipe
        start_new_session=True,
    )


start_ours: Callable[[], Supervisor] = _start_supervisor
"""Starts the supervisor of a program of ours; the tests fork it (`tests.support.preloaded`)."""


class SupervisedProcess:
    """Running server and its supervisor."""

    def __init__(self, spec: ProcessSpec) -> None:
        self._stop_signal = spec.stop_signal
        self._supervisor = start_ours() if spec.is_ours else _start_supervisor()
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self._supervisor.stdin.write(json.dumps(asdict(spec)).encode() + b"\n")
        self._supervisor.stdin.flush()
        with self._supervisor.stdout as reports:
            pid = reports.readline()
        if not pid:
            self._wait(STOP_SECONDS)
            raise RuntimeError(f"{spec.command[0]} could not be started")
        self.pid = int(pid)

    @property
    def running(self) -> bool:
        return self._supervisor.poll() is None

    def stop(self) -> int:
        """Stop the server, with SIGKILL after a timeout. Return its exit code."""
        if self.running:
            _send(self.pid, self._stop_signal)
        try:
            return self._wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self) -> int:
        """Send SIGKILL to the server and all its children at once, as in a power failure."""
        if self.running:
            _kill_family(self.pid)
        return self._wait(STOP_SECONDS)

    def _wait(self, seconds: float) -> int:
        code = self._supervisor.wait(seconds)
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.close()
        return code


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
        os.kill(pid, number)


def _kill_family(pid: int) -> None:
    for member in [pid, *children(pid)]:
        _send(member, signal.SIGKILL)


def children(pid: int) -> list[int]:
    """Return the process ids of the direct children, if the system reports them."""
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listing.read_text().split()] if listing.exists() else []


def execute(spec: ProcessSpec) -> int:
    """Start the server's command as a new program, and return its process id."""
    with Path(spec.log).open("ab") as log:
        server = subprocess.Popen(
            spec.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=spec.folder,
            env=dict(spec.environment),
            user=spec.uid,
            group=spec.gid,
            extra_groups=spec.groups,
        )
    server.returncode = 0  # `_reap` waits for the process: this object must not do so in __del__
    return server.pid


def supervise(start: Callable[[ProcessSpec], int] = execute) -> int:
    """Read what to run, start it, print its process id, wait for its end or that of the tests, and
    reap the children.
    """
    spec = ProcessSpec(**json.loads(sys.stdin.readline()))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(
            PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
        )  # the server's orphans become our children
    server = start(spec)
    print(server, flush=True)
    tests_ended, ended = threading.Event(), threading.Event()
    threading.Thread(
        target=_stop_when_the_tests_end,
        args=(server, spec.stop_signal, tests_ended, ended),
        daemon=True,
    ).start()
    code = _reap(server, spec.orphans_seconds)
    ended.set()
    if tests_ended.is_set():
        shutil.rmtree(spec.folder, ignore_errors=True)
    return code


def _reap(server: int, orphans_seconds: float) -> int:
    """Wait for the end of the server, kill its remaining children, and return its exit code."""
    code: int | None = None
    killing = threading.Event()
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code or 0
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            timer = threading.Timer(orphans_seconds, _kill_orphans, [killing])
            timer.daemon = True
            timer.start()
        elif killing.is_set():
            _kill_orphans(killing)


def _kill_orphans(killing: threading.Event) -> None:
    killing.set()
    for orphan in children(os.getpid()):
        _send(orphan, signal.SIGKILL)


def _stop_when_the_tests_end(
    server: int, stop_signal: int, tests_ended: threading.Event, ended: threading.Event
) -> None:
    os.read(0, 1)  # nothing more is written: this returns when the tests have ended
    tests_ended.set()
    _send(server, stop_signal)
    if not ended.wait(STOP_SECONDS):
        _kill_family(server)


if __name__ == "__main__":
    os._exit(supervise() & 0xFF)  # at once: the thread may still be reading
