"""Step daemon: holds the processes of one step, ends them, and stores how the step ended.

It is the subreaper of the processes: those whose parents have ended become its children, also
after two forks and setsid. So there is no process of the step left when it has no child.

Requests come over the socket of the step, one JSON object a line, and each gets an answer.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from typing import Any

from fairbank.wlm.stepd.processes import (
    Process,
    boot_id,
    descendants,
    process_table,
    send_signal,
    start_time,
)
from fairbank.wlm.stepd.step import (
    FAILURE_MAX,
    LOG,
    NO_START_STATUS,
    Step,
    StepEnd,
    StepStart,
    claim_start,
    read_step,
    reserve_end,
    store_end,
)
from fairbank.wlm.stepd.task import JOB_FAULT_CODE, run_task

TIME_LIMIT = "time limit"
"""Reason of a step that its time limit ended."""
REQUEST_MAX = 65_536  # bytes
CONNECTIONS_MAX = 64
_PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
_KILL_SECONDS = 0.05, 1.0  # first and longest pause between two SIGKILL
_POLL_SECONDS = 86_400.0
_STORE_SECONDS = 1.0  # pause between two attempts to store the end
_CAUSES = {
    TIME_LIMIT: " DUE TO TIME LIMIT",
    "TIMEOUT": " DUE TO TIME LIMIT",
    "PREEMPTED": " DUE TO PREEMPTION",
    "REQUEUED": " DUE TO JOB REQUEUE",
    "NODE_FAIL": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}
"""Ends of Slurm's line about a job that is ended, by the reason of the request."""
_IGNORED = "HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE".split()

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def serve_step(directory: str, listener: socket.socket) -> None:
    """Run the step of a directory in this process, which the launcher has forked for it.

    Args:
        listener: socket for requests.
    """
    os.setsid()
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    for name in _IGNORED:  # signals to all processes of a user or of a terminal
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
    log = os.open(os.path.join(directory, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((null, null, log)):
        os.dup2(file, number)
    reserve_end(directory)
    StepDaemon(directory, read_step(directory), listener).run()


class StepDaemon:
    """Step daemon.

    Invariant: `_status` is None until the script has ended. `_kill_at` is None until the step is
    being ended; then it is the time of the next SIGKILL. `_killed_at` is the time of the first one.
    `_connections` has the requests that are not complete, by descriptor. All times are monotonic.
    """

    def __init__(self, directory: str, step: Step, listener: socket.socket) -> None:
        self._directory, self._step, self._listener = directory, step, listener
        self._poll = select.poll()
        self._connections: dict[int, tuple[socket.socket, bytes]] = {}
        self._status: int | None = None
        self._failure = self._reason = ""
        self._kill_at: float | None = None
        self._killed_at: float | None = None
        self._kill_pause = _KILL_SECONDS[0]
        self._is_announced = False
        self._wakeup, wakeup = os.pipe()
        for end in (self._wakeup, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the wakeup descriptor ends the poll
        self._poll.register(self._wakeup, select.POLLIN)

    def run(self) -> None:
        """Start the script, hold its processes until none is left, and store the end."""
        if not self._start():
            return
        while self._has_children():
            for descriptor, _ in self._poll.poll(self._milliseconds()):
                self._handle(descriptor)
            self._act(time.monotonic())
        self._store_end()

    # ------------------------------------------------------------------ the script

    def _start(self) -> bool:
        """Start the script unless it was started before. Return False if it was.

        The script waits until its process is on the disk: after a crash it can be found.
        """
        (go_read, go), (failures, failure) = os.pipe(), os.pipe()
        self._script = os.fork()
        if self._script == 0:
            os.close(go)
            signal.set_wakeup_fd(-1)
            run_task(self._step, self._directory, go_read, failure)
        os.close(go_read)
        os.close(failure)
        self._started, step = time.monotonic(), self._step
        self._end_at = None if step.seconds is None else self._started + step.seconds
        self._end_reason = TIME_LIMIT
        self._was_warned = step.warning is None
        own, script = start_time(os.getpid()), start_time(self._script)
        start = StepStart(boot_id(), os.getpid(), own, self._script, script)
        may_start = claim_start(self._directory, start)
        if may_start:
            os.write(go, b"\n")
        os.close(go)
        self._failures: int | None = failures
        self._poll.register(failures, select.POLLIN)
        return may_start

    def _has_children(self) -> bool:
        """Wait for the children that have ended. Return False when there is no process left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._script:
                self._status = status

    def _processes(self) -> list[Process]:
        return descendants([os.getpid()], process_table())

    # ------------------------------------------------------------------ time

    def _milliseconds(self) -> float | None:
        """Return the time until something is due, for `poll`; None: nothing is."""
        times = [self._end_at, self._kill_at, self._warning_at()]
        due = min((at for at in times if at is not None), default=None)
        if self._status is not None and self._kill_at is None:
            return 0
        if due is None:
            return None
        # `poll` takes at most 24 days; the loop calls it again.
        return min(max(0.0, due - time.monotonic()), _POLL_SECONDS) * 1_000 + 1

    def _warning_at(self) -> float | None:
        warning = self._step.warning
        if self._was_warned or warning is None or self._end_at is None:
            return None
        return self._end_at - warning[1]

    def _act(self, now: float) -> None:
        """Do what is due."""
        warning_at = self._warning_at()
        if warning_at is not None and self._step.warning and now >= warning_at:
            self._was_warned = True
            self._signal_script(self._step.warning[0])
        if self._kill_at is None and self._status is not None:
            self._end("", now)  # what the script has left behind
        elif self._end_at is not None and now >= self._end_at:
            self._end(self._end_reason, now)
        elif self._kill_at is not None and now >= self._kill_at:
            send_signal(self._processes(), signal.SIGKILL)
            self._killed_at = self._killed_at or now
            self._kill_at = now + self._kill_pause
            self._kill_pause = min(2 * self._kill_pause, _KILL_SECONDS[1])

    def _end(self, reason: str, now: float) -> None:
        """Ask all processes to end, and kill them after KillWait."""
        self._announce(reason)
        self._reason, self._end_at, self._was_warned = reason, None, True
        self._kill_at = now + self._step.kill_wait
        processes = self._processes()
        send_signal(processes, signal.SIGTERM)
        # After it: a stopped process that goes on must not run past the pending SIGTERM.
        send_signal(processes, signal.SIGCONT)

    def _announce(self, reason: str) -> None:
        """Say in the error output of a script that runs that it is ended, once, as Slurm does."""
        step = self._step
        if self._is_announced or self._status is not None or not step.title:
            return
        self._is_announced = True
        at = time.strftime("%Y-%m-%dT%H:%M:%S")
        cause = _CAUSES.get(reason, "")
        line = f"slurmstepd: error: *** {step.title} CANCELLED AT {at}{cause} ***\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(step.error or step.output, flags)
            os.write(file, line.encode())
            os.close(file)
        except OSError:
            pass  # the job is ended all the same

    # ------------------------------------------------------------------ requests

    def _handle(self, descriptor: int) -> None:
        if descriptor == self._wakeup:
            os.read(self._wakeup, 4_096)
        elif descriptor == self._failures:
            self._read_failure(descriptor)
        elif descriptor == self._listener.fileno():
            self._accept()
        else:
            self._receive(descriptor)

    def _read_failure(self, failures: int) -> None:
        """Learn if the script was executed. Only then are requests ever answered."""
        self._failure = os.read(failures, FAILURE_MAX).decode(errors="replace")
        self._failures = None
        self._poll.unregister(failures)
        os.close(failures)
        if not self._failure:
            self._poll.register(self._listener, select.POLLIN)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # the peer has closed it
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, uid, _ = struct.unpack("iII", credentials)
        if uid not in (0, os.geteuid()) or len(self._connections) >= CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        self._connections[connection.fileno()] = connection, b""
        self._poll.register(connection, select.POLLIN)

    def _receive(self, descriptor: int) -> None:
        connection, text = self._connections[descriptor]
        try:
            data = connection.recv(REQUEST_MAX)
            *lines, rest = (text + data).split(b"\n")
            for line in lines:
                connection.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            data = b""
        if not data or len(rest) > REQUEST_MAX:
            self._poll.unregister(connection)
            connection.close()
            del self._connections[descriptor]
        else:
            self._connections[descriptor] = connection, rest

    def _answer(self, line: bytes) -> Mapping[str, Any]:
        now = time.monotonic()
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        match request:
            case {"kind": "state"}:
                return self._state(now)
            case {"kind": "signal", "number": int(number), "only_script": bool(only_script)} if (
                number in signal.valid_signals()
            ):
                if number in (signal.SIGTERM, signal.SIGKILL):
                    self._announce("")
                if only_script:
                    self._signal_script(number)
                else:
                    send_signal(self._processes(), number)
            case {
                "kind": "end",
                "seconds": float() | int() | None as seconds,
                "reason": str(reason),
            }:
                if self._kill_at is None:
                    self._end_at = None if seconds is None else now + seconds
                    self._end_reason = reason[:FAILURE_MAX]
            case _:
                return {"error": "this is not a request to a step daemon: state, signal or end"}
        return {}

    def _state(self, now: float) -> Mapping[str, Any]:
        return {
            "script": self._script,
            "seconds_left": None if self._end_at is None else self._end_at - now,
            "kill_seconds": now - self._killed_at if self._killed_at else 0.0,
            "cpu_seconds": _cpu_seconds(),
        }

    def _signal_script(self, number: int) -> None:
        if self._status is None:  # until then the number belongs to the script
            os.kill(self._script, number)

    def _final_status(self) -> int | None:
        """Return the status of the script, also of one that was not executed."""
        if not self._failure:
            return self._status
        return NO_START_STATUS if self._status == JOB_FAULT_CODE << 8 else None

    def _store_end(self) -> None:
        """Store how the step ended; on a full disk, as soon as there is space."""
        if self._failures is not None:
            self._read_failure(self._failures)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        end = StepEnd(
            self._final_status(),
            self._failure,
            self._reason,
            time.time(),
            time.monotonic() - self._started,
            _cpu_seconds(),
            usage.ru_maxrss,
        )
        while True:
            try:
                store_end(self._directory, end)
                return
            except OSError as error:
                print(f"cannot store the end of the step: {error}", file=sys.stderr, flush=True)
                time.sleep(_STORE_SECONDS)


def _cpu_seconds() -> float:
    """Return the CPU seconds of all processes of the step that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
