"""Supervisor of the daemons of a cluster: `python -m fairbank.wlm.supervisor DIRECTORY`.

It starts the programs that DIRECTORY/daemons.json lists. One that ends is started again after a
pause, which grows while it fails. SIGTERM ends them all, the last of the list first. A log that has
become large is copied to a file with the name LOG.1, and emptied.
DIRECTORY/supervisor.json says which run. Standard library only: it lives as long as the cluster.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

DAEMONS, STATE = "daemons.json", "supervisor.json"
PAUSE_SECONDS, PAUSE_MAX_SECONDS = 0.25, 30.0
STEADY_SECONDS = 60.0
"""Time after which an end is no failed start: the pause is then short again."""
STOP_SECONDS = 20.0
"""Time that a daemon has to end after SIGTERM, before SIGKILL."""
KILL_SECONDS = 5.0
"""Longest wait for its end after SIGKILL."""
LOG_BYTES, LOG_CHECK_SECONDS = 10 * 1024 * 1024, 60.0
"""Size at which a log is emptied, and the longest pause between two checks."""
WRITE_AGAIN_SECONDS = 1.0
"""Pause before a state that could not be written is written again."""
_PR_SET_PDEATHSIG = 1  # of linux/prctl.h
_SIGNALS = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}


class SupervisedDaemon:
    """Daemon, its present process, and when the next one is started."""

    def __init__(self, name: str, command: list[str], log: str) -> None:
        self.name, self._command, self._log = name, command, log
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._since = 0
        self._failures = 0
        self._restarts = -1
        self._end = ""
        self.due: float | None = 0.0
        """Monotonic time of the next start; None while it runs."""

    def start(self) -> None:
        """Start a process. A program that cannot be started has failed."""
        self._began, self._since = time.monotonic(), int(time.time())
        self._restarts += 1
        parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

        def prepare() -> None:
            # A daemon must not outlive its supervisor, which alone ends it.
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(1)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])

        try:
            with open(self._log, "ab") as log:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    preexec_fn=prepare,  # noqa: PLW1509 - there are no threads
                )
        except OSError as error:
            self._plan(f"could not be started: {error}")
        else:
            self.due = None

    def has_ended(self) -> bool:
        """Return True if the process has ended since the last call, and plan the next start."""
        if self._process is None or (code := self._process.poll()) is None:
            return False
        self._process = None
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        self._plan(f"ended with {how}")
        return True

    def _plan(self, end: str) -> None:
        now = time.monotonic()
        self._failures = 0 if now - self._began > STEADY_SECONDS else self._failures
        self._end = end
        self.due = now + min(PAUSE_SECONDS * 2**self._failures, PAUSE_MAX_SECONDS)
        self._failures = min(self._failures + 1, 10)

    def stop(self) -> None:
        """End the process and wait until it has ended."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                # The others must end, too, if the kernel cannot end this one.
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(KILL_SECONDS)

    def limit_log(self) -> None:
        """Copy and empty a log that is large: the daemon appends, so it goes on at the new end.

        A log that cannot be copied stays, and so does one that is no file.
        """
        with suppress(OSError):
            if Path(self._log).stat().st_size > LOG_BYTES:
                shutil.copyfile(self._log, f"{self._log}.1")
                os.truncate(self._log, 0)

    def state(self) -> dict[str, Any]:
        """Return what `fairbank cluster status` shows."""
        return {
            "name": self.name,
            "pid": None if self._process is None else self._process.pid,
            "since": self._since,
            "restarts": self._restarts,
            "end": self._end,
        }


def supervise(directory: Path) -> None:
    """Start the daemons of a directory, and restart them until SIGTERM or SIGINT."""
    # Signals are waited for, so that none arrives between two statements.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    table = json.loads((directory / DAEMONS).read_bytes())
    daemons = [SupervisedDaemon(row["name"], row["command"], row["log"]) for row in table]
    since = int(time.time())
    while True:
        for daemon in daemons:
            daemon.limit_log()
            if daemon.due is not None and daemon.due <= time.monotonic():
                daemon.start()
        states = [daemon.state() for daemon in daemons]
        state = {"pid": os.getpid(), "since": since, "daemons": states}
        is_written = _write(directory / STATE, state)
        pause = LOG_CHECK_SECONDS if is_written else WRITE_AGAIN_SECONDS
        if _wait(daemons, pause) in (signal.SIGTERM, signal.SIGINT):
            break
    for daemon in reversed(daemons):
        daemon.stop()
    (directory / STATE).unlink(missing_ok=True)


def _wait(daemons: list[SupervisedDaemon], longest: float) -> int | None:
    """Wait until a daemon has ended or is due, or a signal asks for the end; return the signal.

    Args:
        daemons: all daemons.
        longest: seconds after which to return in any case.
    """
    check = time.monotonic() + longest
    while True:
        starts = [daemon.due for daemon in daemons if daemon.due is not None]
        pause = max(0.0, min([*starts, check]) - time.monotonic())
        received = signal.sigtimedwait(_SIGNALS, pause)
        # All are asked: several ends may be one signal.
        ended = [daemon for daemon in daemons if daemon.has_ended()]
        if ended or received is None or received.si_signo != signal.SIGCHLD:
            return None if received is None else received.si_signo


def _write(path: Path, content: object) -> bool:
    """Replace a file, so that a reader finds it complete. Return False if the disk is full.

    The daemons must go on then: with their supervisor they would end.
    """
    new = path.with_name(f".{path.name}")
    try:
        new.write_text(json.dumps(content))
        new.replace(path)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
