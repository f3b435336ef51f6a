"""Step daemon of a directory, as the node daemon sees it, also after a restart of either."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from fairbank.core.errors import Conflict, Unavailable
from fairbank.wlm.node.launcher_process import LauncherProcess, LaunchFailed
from fairbank.wlm.node.orphans import end_orphans
from fairbank.wlm.node.step_connection import StepConnection, wait_for_process
from fairbank.wlm.node.usage import final_usage, sample_usage, with_gpu_use
from fairbank.wlm.protocol.messages import EndCause, RunOutcome, RunUsage
from fairbank.wlm.stepd.processes import TICKS_PER_SECOND, Process, descendants
from fairbank.wlm.stepd.step import (
    LOG,
    TIME_LIMIT,
    StepEnd,
    StepStart,
    forbid_start,
    read_end,
    read_start,
    read_step,
)


class StepProcess:
    """Step daemon and the processes of its step.

    Invariants: `_start` is the identity of the step daemon, None until its tasks are executed;
    `_connection` is None while no step daemon takes requests. `end_request` has the seconds and the
    reason of the last request to end the step; it is sent when one does, and so are
    `signals`, and `is_suspended`, the last request to suspend it or let it go on.
    `_gpus` are the numbers of its GPUs, None until they are read, and `_begun` is when the step
    daemon was connected. `kill_seconds` are those since the first SIGKILL, as the step daemon said
    last.
    """

    def __init__(self, directory: Path, name: str, kill_wait: float) -> None:
        """Make a step. `name` is that in messages, `kill_wait` the time until SIGKILL."""
        self._directory, self._name, self._kill_wait = directory, name, kill_wait
        self.usage = RunUsage()
        self.kill_seconds = 0.0
        self.end_request: tuple[float | None, str] | None = None
        self.signals: list[int] = []
        self.is_suspended: bool | None = None
        self._start: StepStart | None = None
        self._connection: StepConnection | None = None
        self._gpus: Sequence[int] | None = None
        self._begun = 0.0

    # ------------------------------------------------------------------ from start to end

    async def launch(
        self,
        launcher: LauncherProcess,
        note_running: Callable[[], None],
        *,
        waits_for_tasks: bool = True,
    ) -> RunOutcome:
        """Start the step daemon, and return how the step ended.

        Args:
            launcher: forks the step daemon.
            note_running: called when all tasks are executed.
            waits_for_tasks: False: it is called before, too, as soon as there is a step daemon.
        """
        try:
            await launcher.launch(self._directory)
        except LaunchFailed as error:
            if self.has_never_started():
                return self.end_without_daemon("launch", error.message)
        else:
            if not waits_for_tasks:
                note_running()
        return await self.follow(note_running)

    async def follow(self, note_running: Callable[[], None]) -> RunOutcome:
        """Wait for the end of the step daemon, and return how the step ended."""
        connection = await StepConnection.open(self._directory)
        is_running = connection is not None and await self._connect(connection, note_running)
        if self.has_never_started():
            return self.end_without_daemon("launch", f"the step daemon ended: {self._last_words()}")
        self._start = start = read_start(str(self._directory))
        if start is not None:
            await wait_for_process(start.daemon, start.daemon_start)
        self._connection = None
        if connection is not None:
            connection.close()
        if (end := read_end(str(self._directory))) is not None:
            if end.status is not None and start is not None and not is_running:
                note_running()  # it ended at once
            return self._outcome(end)
        await end_orphans(self._directory, start, self._kill_wait)
        return self.end_without_daemon(
            "step_daemon_killed", "the step daemon was killed, and its processes were ended"
        )

    async def _connect(self, connection: StepConnection, note_running: Callable[[], None]) -> bool:
        """Wait until the tasks are executed, and send requests from then on.

        Return False if the step has ended.
        """
        try:
            await connection.request(kind="state", wait=None)
        except Unavailable:
            return False  # the end is read
        self._start = read_start(str(self._directory))
        self._connection, self._begun = connection, time.monotonic()
        note_running()
        for number in self.signals:
            with suppress(Unavailable):
                await self.signal(number, only_script=False)
        if self.is_suspended is not None:
            await self.suspend(suspended=self.is_suspended)
        if self.end_request is not None:
            await self.end(*self.end_request)
        return True

    def has_never_started(self) -> bool:
        """Return True if no step daemon has started the tasks; then none will do so later."""
        try:
            return forbid_start(str(self._directory))
        except OSError:  # on a full disk; without the directory no step daemon starts
            shutil.rmtree(self._directory, ignore_errors=True)
            return True

    # ------------------------------------------------------------------ ends

    def end_without_daemon(self, cause: EndCause, text: str) -> RunOutcome:
        """Return an end of which no step daemon has reported."""
        start = self._start
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        elapsed = since_boot - start.daemon_start / TICKS_PER_SECOND if start else 0.0
        usage = self.usage
        return RunOutcome(
            cause=cause, text=text, ended=time.time(), elapsed_seconds=elapsed, usage=usage
        )

    def _outcome(self, end: StepEnd) -> RunOutcome:
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
            lines = (self._directory / LOG).read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it wrote no message"

    # ------------------------------------------------------------------ requests

    async def signal(self, number: int, *, only_script: bool) -> None:
        """Signal the processes, or only the tasks. Raises Conflict if there are none."""
        if self._connection is None:
            raise self.no_processes()
        await self._connection.request(kind="signal", number=number, only_script=only_script)

    async def warn(self, pid: int, number: int, seconds: float) -> None:
        """Have a process signalled before the time limit. Raises Conflict if it is not here."""
        if self._connection is None:
            raise self.no_processes()
        answer = await self._connection.request(
            kind="warn", pid=pid, number=number, seconds=float(seconds)
        )
        if error := answer.get("error"):
            raise Conflict(error, field="pid", remedy="name a process of the job")

    async def suspend(self, *, suspended: bool) -> None:
        """Suspend the step or let it go on; before it has started, as soon as it starts."""
        self.is_suspended = suspended
        if self._connection is not None:
            with suppress(Unavailable):
                await self._connection.request(kind="suspend", suspended=suspended)

    async def end(self, seconds: float | None, reason: str) -> None:
        """End the step, or change its time limit; before it has started, as soon as it starts.

        A step that has just ended stays as it is.
        """
        self.end_request = seconds, reason
        if self._connection is not None:
            with suppress(Unavailable):
                await self._connection.request(kind="end", seconds=seconds, reason=reason)

    async def end_for_memory(self, used: int, limit: int) -> None:
        """Kill the step, because its job has used more bytes than it has."""
        if self._connection is not None:
            with suppress(Unavailable):
                await self._connection.request(kind="over_memory", used=used, limit=limit)

    async def seconds_left(self) -> float | None:
        """Return the time until the time limit, or that which a step daemon will have.

        None: there is no limit, or the step has ended.
        """
        if self._connection is None:
            return self._requested_seconds()
        state = await self._connection.request(kind="state", wait=None)  # a start needs the time
        left: float | None = state["seconds_left"]
        return left

    def _requested_seconds(self) -> float | None:
        if self.end_request is not None:
            return self.end_request[0]
        try:
            return read_step(str(self._directory)).seconds
        except OSError:  # it ends just now
            return None

    @property
    def is_ending(self) -> bool:
        """True if the last request was to end the step at once."""
        seconds = None if self.end_request is None else self.end_request[0]
        return seconds is not None and seconds <= 0

    @property
    def is_connected(self) -> bool:
        """True if there is a step daemon that takes requests."""
        return self._connection is not None

    def no_processes(self) -> Conflict:
        return Conflict(f"{self._name} has no processes here", remedy="see its state: squeue")

    # ------------------------------------------------------------------ processes

    async def ended_cpu_seconds(self) -> float | None:
        """Return the CPU time of the processes that have ended; None if nothing runs."""
        if self._connection is None:
            return None
        try:
            state = await self._connection.request(kind="state")
        except Unavailable:
            return None
        self.kill_seconds = state["kill_seconds"]
        return float(state["cpu_seconds"])

    def sample(self, ended_cpu_seconds: float, table: Mapping[int, Process]) -> None:
        """Take a sample of the usage."""
        if self._start is not None:
            self.usage = sample_usage(self._start.daemon, ended_cpu_seconds, table, self.usage)

    def add_gpu_use(self, parts: dict[int, float], since: float) -> None:
        """Take the GPUs of the step out of the busy parts by number, and count them.

        Those of a suspended step do not count, since its time stands still. `since` is the time of
        the sample before, on the monotonic clock.
        """
        if self._connection is None:
            return
        if self._gpus is None:
            with suppress(OSError):  # it ends just now
                self._gpus = read_step(str(self._directory)).gpus
        busy = [parts.pop(number) for number in self._gpus or () if number in parts]
        if self._gpus and not self.is_suspended:
            seconds = time.monotonic() - max(since, self._begun)
            self.usage = with_gpu_use(self.usage, busy, seconds)

    async def tasks(self) -> dict[int, tuple[int, int]]:
        """Return the number on the node and the rank of each running task, by process id.

        There are none if the step daemon does not answer.
        """
        tasks: dict[int, tuple[int, int]] = {}
        first = 0
        with suppress(Unavailable):
            while connection := self._connection:
                answer = await connection.request(kind="tasks", first=first)
                if not (page := answer.get("tasks")):
                    break
                tasks |= {pid: (local, rank) for local, rank, pid in page}
                first = page[-1][0] + 1
        return tasks

    def processes(self, table: Mapping[int, Process]) -> list[Process]:
        """Return the processes of the step among all processes; none after its end."""
        start = self._start
        return [] if start is None else descendants([start.daemon], table)
