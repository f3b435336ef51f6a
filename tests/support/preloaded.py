"""Process that has imported Fairbank and starts Python programs for the tests by fork.

The imports are nearly all that a start of a server costs. The forked program has its own
environment, directory and files, and ends as any Python program does.
"""

from __future__ import annotations

import gc
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from tests.support import supervisor
from tests.support.supervisor import ProcessSpec, supervise

CHECKOUT = Path(__file__).resolve().parents[2]
MODULES = (
    "fairbank.cli.main",
    "fairbank.cli.commands.admin.server",
    "fairbank.cli.commands.slurm.agent",
    "fairbank.setup.server",
    "fairbank.setup.agent",
    "fairbank.agent.daemon",
    # uvicorn, anyio and litestar import these at the start of a server or at its first request.
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.lifespan.on",
    "anyio._backends._asyncio",
    "litestar._kwargs",
    "litestar.exceptions.responses",
    "litestar.middleware.response_cache",
    # Commands of the tests' own servers.
    "tests.cli.site",
    "tests.rest.served",
)


class ForkedSupervisor:
    """Supervisor forked by the preloaded process, with the methods of Popen that are used."""

    def __init__(self, line: socket.socket) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        socket.send_fds(line, [b"fork"], [theirs_in, theirs_out])
        for theirs in (theirs_in, theirs_out):
            os.close(theirs)
        self.stdin = os.fdopen(ours_in, "wb")
        self.stdout = os.fdopen(ours_out, "rb", buffering=0)  # reads no more than its line
        self._end: int | None = os.dup(ours_out)  # at its end of file the supervisor has ended
        self._code = b""

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float) -> int:
        """Wait for the end. Raises TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while self._end is not None:
            remaining = max(0.0, deadline - time.monotonic())
            if not select.select([self._end], [], [], remaining)[0]:
                raise subprocess.TimeoutExpired("supervisor", timeout)
            if code := os.read(self._end, 16):
                self._code += code
            else:
                os.close(self._end)
                self._end = None
        return int(self._code or -signal.SIGKILL)


class Preloaded:
    """The process; it starts with the first fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self) -> ForkedSupervisor:
        with self._lock:
            if self._line is None:
                self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    self._process = subprocess.Popen(
                        [sys.executable, "-m", __name__], cwd=CHECKOUT,
                        stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True,
                    )  # fmt: skip
            return ForkedSupervisor(self._line)

    def close(self) -> None:
        if self._line is not None and self._process is not None:
            self._line.close()
            self._process.wait()


@contextmanager
def preloaded() -> Iterator[None]:
    """Let supervisors run Python programs of this checkout as forks while the block lasts."""
    process = Preloaded()
    before = supervisor.start_ours
    supervisor.start_ours = process.fork
    try:
        yield
    finally:
        supervisor.start_ours = before
        process.close()


def _fork_program(spec: ProcessSpec) -> int:
    """Run the command in a fork, and return its process id.

    The fork never returns: SystemExit passes through all frames, and Python ends in order.
    """
    pid = os.fork()
    if pid:
        return pid
    if spec.groups is not None:
        os.setgroups(spec.groups)
    os.chdir(spec.folder)
    with open(os.devnull, "rb") as nothing, Path(spec.log).open("ab") as log:
        for file, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(file.fileno(), number)
    os.environ.clear()
    os.environ.update(spec.environment)
    time.tzset()
    if spec.command[1:2] == ["-m"]:
        sys.argv = spec.command[2:]
        runpy.run_module(spec.command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = spec.command
        runpy.run_path(spec.command[0], run_name="__main__")
    sys.exit()


def main() -> None:
    """Fork a supervisor for each message, with the message's files as its input and output."""
    for module in MODULES:
        import_module(module)
    # Half of what a server computes at its start; the same for each.
    import_module("fairbank.rest.app").document()
    gc.freeze()  # the collector of a fork would write to, and so copy, all that it shares
    line = socket.socket(fileno=os.dup(0))
    while files := socket.recv_fds(line, 16, 2)[1]:
        if os.fork() == 0:
            line.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            os.setsid()
            os.write(1, b"%d" % (supervise(_fork_program) & 0xFF))
            os._exit(0)
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    with suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main()
