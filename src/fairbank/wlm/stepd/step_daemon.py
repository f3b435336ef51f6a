"""Step daemon: holds the processes of one step, ends them, and stores how the step ended.

It is the subreaper of the processes: those whose parents have ended become its children, also
after two forks and setsid. So there is no process of the step left when it has no child.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

from fairbank.wlm.protocol.frames import OUT_OF_MEMORY_STATUS
from fairbank.wlm.stepd.error_output import ErrorOutput
from fairbank.wlm.stepd.limit_warnings import LimitWarnings
from fairbank.wlm.stepd.poller import Poller
from fairbank.wlm.stepd.processes import (
    Process,
    boot_id,
    descendants,
    oom_kills,
    process_table,
    send_signal,
    start_time,
)
from fairbank.wlm.stepd.request_socket import RequestSocket
from fairbank.wlm.stepd.signals import NUMBERS, reset_signals
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
from fairbank.wlm.stepd.streams import StepStreams
from fairbank.wlm.stepd.suspension import EndTime, Suspension
from fairbank.wlm.stepd.task import JOB_FAULT_CODE, empty_files, read_environment, shared_files
from fairbank.wlm.stepd.task_programs import exit_code, run_epilogs
from fairbank.wlm.stepd.task_starts import TaskStarts

_PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
_KILL_SECONDS = 0.05, 1.0  # first and longest pause between two SIGKILL
_POLL_SECONDS = 86_400.0
_ANSWER_TASKS = 1_000
"""Tasks of an answer, which must fit the buffer of a socket and the line that its reader takes."""
_STARTS = 16
"""Tasks that are started before requests and streams are served again."""
_FATAL = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL)
"""Signals that end a task that is not started yet."""
_STORE_SECONDS = 1.0  # pause between two attempts to store the end

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def serve_step(directory: str, listener: socket.socket) -> None:
    """Run the step of a directory in this process, which the launcher has forked for it.

    Args:
        listener: socket for requests.
    """
    os.setsid()
    if _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    log = os.open(os.path.join(directory, LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDWR)
    for number, file in enumerate((null, null, log)):
        os.dup2(file, number)
    reserve_end(directory)
    StepDaemon(directory, read_step(directory), listener).run()


class StepDaemon:
    """Step daemon.

    Invariant: `_running` has the rank of each task that has not ended, by its process id, and
    `_statuses` the wait status of the others, by rank. `_epilogs` has the ranks of those
    whose epilogs run, by the process id of these. `_starts` has the tasks that are not started.
    `_kill_at` is None until the step is being ended; then it is the time of the next SIGKILL.
    `_killed_at` is the time of the first one. All times are monotonic.
    """

    def __init__(self, directory: str, step: Step, listener: socket.socket) -> None:
        self._directory, self._step = directory, step
        self._poller = Poller()
        self._requests = RequestSocket(listener, self._poller, self._answer, self._attach)
        self._suspension = Suspension(self._processes)
        self._running: dict[int, int] = {}
        self._statuses: dict[int, int] = {}
        self._epilogs: dict[int, int] = {}
        self._failure = self._reason = ""
        self._kill_at: float | None = None
        self._killed_at: float | None = None
        self._kill_pause = _KILL_SECONDS[0]
        self._is_announced = self._is_out_of_memory = False
        self._wakeup, wakeup = os.pipe()
        for end in (self._wakeup, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the wakeup descriptor ends the poll
        self._poller.register(self._wakeup, lambda: os.read(self._wakeup, 4_096))

    def run(self) -> None:
        """Start the tasks, hold their processes until none is left, and store the end."""
        if not self._start():
            return
        while self._has_children() or not self._starts.is_over:
            self._poller.wait(self._milliseconds())
            self._act(time.monotonic())
        while self._failures is not None:
            self._read_failure()  # it writes to the streams
        self._streams.finish()
        self._store_end()
        self._streams.send_all()
        # The node daemon waits for the end of this process, and frees the node then.
        if self._streams.is_wanted and os.fork() == 0:
            self._streams.drain()

    # ------------------------------------------------------------------ the tasks

    def _start(self) -> bool:
        """Start the first task unless it was started before. Return False if it was.

        It waits until it is written down: when this process is killed, it can be found, and the
        others by the mark in their environment.
        """
        tasks = self._step.all_tasks
        step = self._step._replace(shared=shared_files(tasks))
        self._locals = {task.rank: local for local, task in enumerate(tasks)}
        self._starts = TaskStarts(self._directory, step)
        self._streams = StepStreams(
            self._directory,
            self._poller,
            self._signal_all,
            tasks=len(tasks),
            has_srun=bool(step.tasks),
        )
        self._errors = ErrorOutput(step, self._streams)
        self._start_task()
        self._started = time.monotonic()
        self._end_time = EndTime(self._suspension, step.seconds, self._started)
        self._warnings = LimitWarnings()
        first = next(iter(self._running))
        start = StepStart(boot_id(), os.getpid(), start_time(os.getpid()), first, start_time(first))
        may_start = claim_start(self._directory, start)
        if may_start:
            if not step.append:
                empty_files(step.shared)
            self._starts.allow()
        self._failures: int | None = self._starts.failures
        self._poller.register(self._starts.failures, self._read_failure)
        if self._starts.is_over:
            self._end_starts()
        else:
            self._requests.open()
        return may_start

    def _start_task(self) -> None:
        """Start the next task. Raises OSError."""
        pid, rank, ends = self._starts.start_next()
        self._running[pid] = rank
        self._streams.add_task(rank, ends)

    def _start_tasks(self) -> None:
        """Start some of the tasks that are left. If the node has too little, end the step."""
        try:
            for _ in range(_STARTS):
                if self._starts.is_over:
                    self._end_starts()
                    return
                self._start_task()
        except OSError as error:
            self._errors.report_failure(f"cannot start all tasks: {error.strerror}")
            self._drop_tasks(JOB_FAULT_CODE << 8)
            self._end("", time.monotonic())

    def _drop_tasks(self, status: int) -> None:
        """Start no more tasks. Those that are left have a wait status all the same."""
        if not self._starts.is_over:
            ranks = self._starts.drop()
            self._statuses.update(dict.fromkeys(ranks, status))
            self._streams.end_tasks(ranks, status)
            self._end_starts()

    def _end_starts(self) -> None:
        self._starts.close()
        self._streams.end_starts()

    def _starts_epilogs(self, rank: int) -> bool:
        """Start the programs that run after a task, before its end is reported.

        Return False if there are none, or the step is being ended.
        """
        if not self._step.epilogs or self._kill_at is not None:
            return False
        local = self._locals[rank]
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            reset_signals()
            task = self._step.all_tasks[local]
            environment = read_environment(self._directory, local, task)
            run_epilogs(self._step.epilogs, environment, self._step.directory)
        self._epilogs[pid] = rank
        return True

    def _has_children(self) -> bool:
        """Wait for the children that have ended. Return False when there is no process left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            rank = self._running.pop(pid, None)
            self._note_memory()
            if rank is not None:
                if self._is_out_of_memory and status == signal.SIGKILL:
                    status = OUT_OF_MEMORY_STATUS
                self._statuses[rank] = status
                if not self._starts_epilogs(rank):
                    self._streams.end_tasks([rank], status)
            elif pid in self._epilogs:
                rank = self._epilogs.pop(pid)
                if status:
                    self._errors.report_epilog(exit_code(status))
                self._streams.end_tasks([rank], self._statuses[rank])

    def _note_memory(self) -> None:
        """Learn if the kernel has killed a process because of its memory."""
        if not self._is_out_of_memory and (count := oom_kills(self._step.memory_group)):
            self._is_out_of_memory = True
            self._errors.report_kills(count)

    def _processes(self) -> list[Process]:
        return descendants([os.getpid()], process_table())

    # ------------------------------------------------------------------ time

    def _milliseconds(self) -> float | None:
        """Return the time until something is due, for `poll`; None: nothing is."""
        deadline = self._end_time.due
        times = [deadline, self._kill_at, self._streams.due(), self._suspension.due]
        times.append(self._warnings.next_at(deadline))
        due = min((at for at in times if at is not None), default=None)
        if self._may_start or not (self._is_busy or self._kill_at is not None):
            return 0
        if due is None:
            return None
        # `poll` takes at most 24 days; the loop calls it again.
        return min(max(0.0, due - time.monotonic()), _POLL_SECONDS) * 1_000 + 1

    @property
    def _may_start(self) -> bool:
        """True if tasks are left, and may start now."""
        return not self._starts.is_over and self._suspension.since is None

    @property
    def _is_busy(self) -> bool:
        """True if a task runs, or will run."""
        return bool(self._running or self._epilogs) or not self._starts.is_over

    def _act(self, now: float) -> None:
        """Do what is due."""
        deadline = self._end_time.due
        for number, _, process in self._warnings.take_due(deadline, now):
            send_signal([process], number)
        self._streams.act(now)
        self._suspension.act(now)
        if self._may_start:
            self._start_tasks()
        if self._kill_at is None and not self._is_busy:
            self._end("", now)  # what the tasks have left behind
        elif deadline is not None and now >= deadline:
            self._end(self._end_time.reason, now)
        elif self._kill_at is not None and now >= self._kill_at:
            send_signal(self._processes(), signal.SIGKILL)
            self._killed_at = self._killed_at or now
            self._kill_at = now + self._kill_pause
            self._kill_pause = min(2 * self._kill_pause, _KILL_SECONDS[1])

    def _end(self, reason: str, now: float) -> None:
        """Ask all processes to end, and kill them after KillWait."""
        self._announce(reason)
        self._reason = reason
        self._end_time.remove()
        self._drop_tasks(signal.SIGTERM)
        self._kill_at = now + self._step.kill_wait
        processes = self._processes()
        send_signal(processes, signal.SIGTERM)
        # After it: a stopped process that goes on must not run past the pending SIGTERM.
        send_signal(processes, signal.SIGCONT)
        self._suspension.end(now)

    def _announce(self, reason: str) -> None:
        """Say once, while a task runs, that the step is ended."""
        step = self._step
        if not self._is_announced and self._running and step.title and not step.is_silent:
            self._is_announced = True
            self._errors.announce(reason)

    def _end_for_memory(self, used: int, limit: int) -> None:
        """Kill all processes, because their job has used more bytes than it has."""
        self._errors.report_memory(used, limit)
        self._is_out_of_memory = self._is_announced = True
        self._end_time.remove()
        self._drop_tasks(OUT_OF_MEMORY_STATUS)
        self._kill_at = time.monotonic()

    # ------------------------------------------------------------------ requests

    def _read_failure(self) -> None:
        """Learn if all tasks were executed. If not, only a step answers requests: srun waits."""
        if self._failures is None:
            return
        text = os.read(self._failures, FAILURE_MAX).decode(errors="replace")
        if text:
            self._failure = self._failure or text.partition("\n")[0]  # that of one task
            return
        self._poller.unregister(self._failures)
        os.close(self._failures)
        self._failures = None
        if self._failure and self._step.tasks:
            self._errors.report_failure(self._failure)
        if not self._failure or self._step.tasks:
            self._requests.open()

    def _answer(self, request: object) -> Mapping[str, Any]:
        now = time.monotonic()
        match request:
            case {"kind": "state"}:
                return self._state(now)
            case {"kind": "tasks", "first": int(first)}:
                running = [(self._locals[rank], rank, pid) for pid, rank in self._running.items()]
                tasks = sorted(task for task in running if task[0] >= first)
                return {"tasks": tasks[:_ANSWER_TASKS]}
            case {"kind": "signal", "number": int(number), "only_script": bool(only_script)} if (
                number in NUMBERS
            ):
                if number in (signal.SIGTERM, signal.SIGKILL):
                    self._announce("")
                if only_script:
                    self._signal_tasks(number)
                else:
                    self._signal_all(number)
            case {"kind": "warn", "pid": int(pid), "number": int(number), "seconds": float(early)}:
                process = next((one for one in self._processes() if one.pid == pid), None)
                if process is None or not self._warnings.add(number, early, process):
                    return {"error": f"process {pid} has ended, or has too many warnings"}
            case {
                "kind": "end",
                "seconds": float() | int() | None as seconds,
                "reason": str(reason),
            }:
                if self._kill_at is None:
                    self._end_time.set(seconds, reason[:FAILURE_MAX], now)
            case {"kind": "suspend", "suspended": bool(is_suspended)}:
                if not is_suspended:
                    self._end_time.delay(self._suspension.end(now))
                elif self._kill_at is None:
                    self._suspension.begin(now)
            case {"kind": "over_memory", "used": int(used), "limit": int(limit)}:
                if self._kill_at is None:
                    self._end_for_memory(used, limit)
            case _:
                kinds = "state, tasks, signal, warn, end, suspend or over_memory"
                return {"error": f"this is not a request to a step daemon: {kinds}"}
        return {}

    def _state(self, now: float) -> Mapping[str, Any]:
        return {
            "seconds_left": self._end_time.seconds_left(now),
            "kill_seconds": now - self._killed_at if self._killed_at else 0.0,
            "cpu_seconds": _cpu_seconds(),
        }

    def _attach(self, connection: socket.socket, origin: str, wants_input: bool) -> None:
        self._streams.attach(connection, origin, wants_input=wants_input)

    def _signal_all(self, number: int) -> None:
        if number in _FATAL:
            self._drop_tasks(number)
        send_signal(self._processes(), number)

    def _signal_tasks(self, number: int) -> None:
        for pid in self._running:  # until they end the numbers belong to the tasks
            os.kill(pid, number)

    def _final_status(self) -> int | None:
        """Return the status of the step: of a task that a signal ended, else the highest."""
        statuses = self._statuses.values()
        if self._failure:
            return NO_START_STATUS if JOB_FAULT_CODE << 8 in statuses else None
        if self._is_out_of_memory:
            return OUT_OF_MEMORY_STATUS
        return next((one for one in statuses if os.WIFSIGNALED(one)), max(statuses, default=None))

    def _store_end(self) -> None:
        """Store how the step ended; on a full disk, as soon as there is space."""
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
