"""Keeper that starts a server for the tests and ends it when the tests have ended in any way. A
small process, the keeper, is between the tests and the server. It has the reading end of a pipe,
which closes when the tests end, even by SIGKILL: then the keeper stops the server and removes its
directory. The keeper is the parent of the server and of all orphans of a killed server, and ends
only after them, so that a server may start again on its data.
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
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

STOP_SECONDS = 20
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


@dataclass(frozen=True)
class Order:
    """Command to run, its user, and the signal that stops it. It reaches the keeper as JSON through
    a pipe, where ps does not show it.
    """

    command: list[str]
    environment: Mapping[str, str]
    folder: str
    log: str
    uid: int
    gid: int
    groups: list[int] | None
    stop_signal: int
    orphans_seconds: float = 0.0  # so long they have to end by themselves when the server is dead


class Kept:
    """Running server and its keeper."""

    def __init__(self, order: Order) -> None:
        self._stop_signal = order.stop_signal
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is for the tests; the keeper hears of their end in its own way
            start_new_session=True,
        )
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(json.dumps(asdict(order)).encode() + b"\n")
        self._keeper.stdin.flush()
        with self._keeper.stdout as answer:
            output = answer.readline()
        if not output:
            self._forget(STOP_SECONDS)
            raise RuntimeError(f"{order.command[0]} could not be started")
        self.pid = int(output)

    @property
    def running(self) -> bool:
        return self._keeper.poll() is None

    def stop(self) -> None:
        """Stop the server, with SIGKILL after a timeout."""
        if self.running:
            _send(self.pid, self._stop_signal)
        try:
            self._forget(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL to the server and all its children at once, as in a power failure."""
        if self.running:
            _kill_family(self.pid)
        self._forget(STOP_SECONDS)

    def _forget(self, seconds: float) -> None:
        self._keeper.wait(seconds)
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()


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


def keep(order: Order) -> int:
    """Run the keeper: start the server, report its process id, wait for its end or that of the
    tests, and reap children.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(
            PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
        )  # the server's orphans become our children
    with Path(order.log).open("ab") as log:
        server = subprocess.Popen(
            order.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=order.folder,
            env=dict(order.environment),
            user=order.uid,
            group=order.gid,
            extra_groups=order.groups,
        )
    print(server.pid, flush=True)
    orphaned, ended = threading.Event(), threading.Event()
    threading.Thread(
        target=_end_with_the_tests,
        args=(server.pid, order.stop_signal, orphaned, ended),
        daemon=True,
    ).start()
    code = _bury(server.pid, order.orphans_seconds)
    ended.set()
    if orphaned.is_set():
        shutil.rmtree(order.folder, ignore_errors=True)
    return code


def _bury(server: int, orphans_seconds: float) -> int:
    """Wait for the end of the server, kill its remaining children, and return its exit code."""
    code: int | None = None
    insisting = threading.Event()
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code or 0
        if pid == server:
            code = os.waitstatus_to_exitcode(status)
            patience = threading.Timer(orphans_seconds, _kill_orphans, [insisting])
            patience.daemon = True
            patience.start()
        elif insisting.is_set():
            _kill_orphans(insisting)


def _kill_orphans(insisting: threading.Event) -> None:
    insisting.set()
    for orphan in children(os.getpid()):
        _send(orphan, signal.SIGKILL)


def _end_with_the_tests(
    server: int, stop_signal: int, orphaned: threading.Event, ended: threading.Event
) -> None:
    os.read(0, 1)  # nobody writes any more: this returns when the tests are gone
    orphaned.set()
    _send(server, stop_signal)
    if not ended.wait(STOP_SECONDS):
        _kill_family(server)


if __name__ == "__main__":
    os._exit(
        keep(Order(**json.loads(sys.stdin.readline()))) & 0xFF
    )  # at once: the thread may still be reading
