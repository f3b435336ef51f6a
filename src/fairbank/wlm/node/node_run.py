"""Run on a node: Prolog, start, wait for the end, Epilog; also across restarts of the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import NamedTuple

import msgspec

from fairbank.cluster.job import Run
from fairbank.core.errors import Conflict, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.node.control_group import remove_group
from fairbank.wlm.node.job_directory import JobDirectories
from fairbank.wlm.node.launcher_process import LauncherProcess, LaunchFailed
from fairbank.wlm.node.orphans import end_orphans, group_of
from fairbank.wlm.node.programs import program_environment, run_program
from fairbank.wlm.node.run_store import RunStore, StoredRun
from fairbank.wlm.node.settings import NodeSettings
from fairbank.wlm.node.step_connection import StepConnection, wait_for_process
from fairbank.wlm.node.usage import final_usage, sample_usage
from fairbank.wlm.protocol.messages import (
    EndCause,
    EndJob,
    RunOutcome,
    RunState,
    RunStatus,
    RunUsage,
    SignalJob,
)
from fairbank.wlm.stepd.processes import TICKS_PER_SECOND, Process, descendants
from fairbank.wlm.stepd.step import (
    LOG,
    StepEnd,
    StepStart,
    forbid_start,
    read_end,
    read_start,
    read_step,
)
from fairbank.wlm.stepd.step_daemon import TIME_LIMIT

STORE_SECONDS = 1.0  # pause between two attempts to store an end on a full disk

_log = logging.getLogger(__name__)

StartTask = Callable[[Coroutine[None, None, None]], object]
"""Function that starts a task, and ends the daemon if the task fails."""


class NodeContext(NamedTuple):
    """Node of a run. `notify` gets the status of the run after each change."""

    name: str
    boot_id: str
    settings: NodeSettings
    directories: JobDirectories
    launcher: LauncherProcess
    store: RunStore
    notify: Callable[[RunStatus], None]
    start_task: StartTask


class NodeRun:
    """Run that the node has accepted.

    Invariant: `status` is what the controller knows, or will know after the next registration.
    `_start` is the identity of the step daemon, None until the script is executed; `_connection` is
    None while there is no step daemon. `_end_request` is the last request to end the run; it is
    sent when there is a step daemon.
    """

    def __init__(self, stored: StoredRun, context: NodeContext) -> None:
        self._stored, self._context = stored, context
        self.directory = context.directories.path(stored.run)
        start = read_start(str(self.directory))
        state: RunState = "running" if start else "prolog"
        self.status = RunStatus(
            run=stored.run,
            state="finished" if stored.end else state,
            script=start.script if start else None,
            end=stored.end,
            epilog_status=stored.epilog_status,
        )
        self.usage = RunUsage()
        self._start: StepStart | None = None
        self._connection: StepConnection | None = None
        self._end_request: EndJob | None = None
        self._kill_seconds = 0.0  # since the first SIGKILL, as the step daemon says

    @property
    def run(self) -> Run:
        return self._stored.run

    # ------------------------------------------------------------------ from start to end

    async def start(self) -> None:
        """Bring a new run to its end."""
        await self._finish(await self._run_prolog() or await self._launch())

    async def resume(self) -> None:
        """Bring a run of an earlier daemon to its end. Nothing is started that had not started."""
        if self._stored.boot_id != self._context.boot_id:
            end = self._end("node_failure", "the node was booted while the job ran")
            await self._store(end, epilog_status=None)
        elif self._has_never_started():
            await end_orphans(self.directory, None, self._context.settings.kill_wait)  # a Prolog
            await self._finish(self._end("launch", "the node daemon was killed during the start"))
        else:
            end = await self._follow()
            await end_orphans(self.directory, None, self._context.settings.kill_wait)  # an Epilog
            await self._finish(end)

    async def _run_prolog(self) -> RunOutcome | None:
        """Run the Prolog. Return the end of the run if it must not start then."""
        settings = self._context.settings
        status = await run_program(settings.prolog, self._environment(), settings.prolog_timeout)
        if status != 0:
            return self._end(
                "prolog", f"the Prolog ended with the status {status >> 8}:{status & 0x7F}"
            )
        request = self._end_request
        if request is not None and request.seconds is not None and request.seconds <= 0:
            return self._end("request", request.reason)
        return None

    async def _launch(self) -> RunOutcome:
        self._change("starting")
        try:
            await self._context.launcher.launch(self.directory)
        except LaunchFailed as error:
            if self._has_never_started():
                return self._end("launch", error.message)
        return await self._follow()

    async def _follow(self) -> RunOutcome:
        """Wait for the end of the step daemon, and return how the run ended."""
        connection = await StepConnection.open(self.directory)
        if connection is not None:
            await self._connect(connection)
        if self._has_never_started():
            return self._end("launch", f"the step daemon ended: {self._last_words()}")
        self._start = start = read_start(str(self.directory))
        if start is not None:
            await wait_for_process(start.daemon, start.daemon_start)
        self._connection = None
        if connection is not None:
            connection.close()
        if (end := read_end(str(self.directory))) is not None:
            if end.status is not None and start is not None and self.status.state != "running":
                self._change("running", script=start.script)  # it ended at once
            return self._end_of_step(end)
        await end_orphans(self.directory, start, self._context.settings.kill_wait)
        return self._end("step_daemon_killed", "the step daemon was killed; its job was ended")

    async def _connect(self, connection: StepConnection) -> None:
        """Wait until the script is executed, and send requests from then on."""
        try:
            state = await connection.request(kind="state")
            self._start = read_start(str(self.directory))
            self._connection = connection
            self._change("running", script=state["script"])
            if self._end_request is not None:
                await self._send_end(connection, self._end_request)
        except Unavailable:
            pass  # it has ended; the end is read

    def _has_never_started(self) -> bool:
        """Return True if no step daemon has started the script; then none will do so later."""
        try:
            return forbid_start(str(self.directory))
        except OSError:  # on a full disk
            self._context.directories.remove(self.run)  # without it no step daemon starts
            return True

    async def _finish(self, end: RunOutcome) -> None:
        """Run the Epilog and store the end."""
        remove_group(group_of(self.directory))
        self._change("epilog", end=end)
        settings = self._context.settings
        status = await run_program(settings.epilog, self._environment(), settings.epilog_timeout)
        await self._store(end, status)

    async def _store(self, end: RunOutcome, epilog_status: int | None) -> None:
        stored = msgspec.structs.replace(self._stored, end=end, epilog_status=epilog_status)
        while True:
            try:
                self._context.store.put(stored)
                break
            except sqlite3.Error as error:
                _log.error("cannot store the end of %s: %s", self.run, error)
                await asyncio.sleep(STORE_SECONDS)
        self._change("finished", end=end, epilog_status=epilog_status)

    def _change(self, state: RunState, **fields: object) -> None:
        self.status = RunStatus(run=self.run, state=state, **fields)  # type: ignore[arg-type]
        self._context.notify(self.status)

    # ------------------------------------------------------------------ ends

    def _end(self, cause: EndCause, text: str) -> RunOutcome:
        """Return an end of which no step daemon has reported."""
        start = self._start
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        elapsed = since_boot - start.daemon_start / TICKS_PER_SECOND if start else 0.0
        usage = self.usage
        return RunOutcome(
            cause=cause, text=text, ended=time.time(), elapsed_seconds=elapsed, usage=usage
        )

    def _end_of_step(self, end: StepEnd) -> RunOutcome:
        cause: EndCause = "exit"
        if end.status is None:
            cause = "launch"
        elif end.reason:
            cause = "time_limit" if end.reason == TIME_LIMIT else "request"
        return RunOutcome(
            cause=cause,
            status=end.status,
            text=end.failure or end.reason,
            ended=end.ended,
            elapsed_seconds=end.elapsed_seconds,
            usage=final_usage(end.cpu_seconds, end.resident_max_kib, self.usage),
        )

    def _last_words(self) -> str:
        """Return the last line in the log of a step daemon that ended too early."""
        try:
            lines = (self.directory / LOG).read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it wrote no message"

    def _environment(self) -> Mapping[str, str]:
        return program_environment(self.run, self._context.name, self.directory)

    # ------------------------------------------------------------------ requests

    async def signal(self, request: SignalJob) -> None:
        """Signal the processes. Raises Conflict if the job has none."""
        if self._connection is None:
            raise self._no_processes()
        await self._connection.request(
            kind="signal", number=request.number, only_script=request.only_script
        )

    async def end(self, request: EndJob) -> None:
        """End the run, or change its time limit; before it has started, as soon as it starts."""
        self._end_request = request
        if self._connection is not None:
            await self._send_end(self._connection, request)

    async def _send_end(self, connection: StepConnection, request: EndJob) -> None:
        await connection.request(kind="end", seconds=request.seconds, reason=request.reason)

    def notify(self, text: str) -> None:
        """Write a line to the error output of the job.

        Raises:
            Conflict: the job has no processes.
            FairbankError: the file cannot be written now.
        """
        if self._connection is None:
            raise self._no_processes()
        step = read_step(str(self.directory))
        path = step.error or step.output
        line = "".join(letter if letter.isprintable() else "?" for letter in text) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(os.open(path, flags), "wb", buffering=0) as file:
                file.write(line.encode(errors="replace"))
        except OSError as error:
            raise translate_os_error(error, f"cannot write to {path}") from error

    def _no_processes(self) -> Conflict:
        return Conflict(f"{self.run} has no processes here", remedy="see its state: squeue")

    async def seconds_left(self) -> float | None:
        """Return the time until the time limit; None if there is no limit, or nothing runs."""
        if self._connection is None:
            return None
        left: float | None = (await self._connection.request(kind="state"))["seconds_left"]
        return left

    # ------------------------------------------------------------------ processes

    async def ended_cpu_seconds(self) -> float | None:
        """Return the CPU time of the processes that have ended; None if nothing runs."""
        if self._connection is None:
            return None
        try:
            state = await self._connection.request(kind="state")
        except Unavailable:
            return None
        self._kill_seconds = state["kill_seconds"]
        return float(state["cpu_seconds"])

    def sample(self, ended_cpu_seconds: float, table: Mapping[int, Process]) -> None:
        """Take a sample of the usage, and report processes that cannot be ended."""
        if self._start is None:
            return
        self.usage = sample_usage(self._start.daemon, ended_cpu_seconds, table, self.usage)
        settings = self._context.settings
        if self._kill_seconds > settings.unkillable_timeout and not self.status.unkillable:
            pids = tuple(process.pid for process in self.processes(table))
            self.status = msgspec.structs.replace(self.status, unkillable=pids)
            self._context.notify(self.status)
            self._context.start_task(self._run_unkillable_program(settings))

    async def _run_unkillable_program(self, settings: NodeSettings) -> None:
        program, seconds = settings.unkillable_program, settings.epilog_timeout
        await run_program(program, self._environment(), seconds)

    def processes(self, table: Mapping[int, Process]) -> list[Process]:
        """Return the processes of the run among all processes; none after its end."""
        start = self._start
        return [] if start is None else descendants([start.daemon], table)
