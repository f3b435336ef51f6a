"""Run on a node: Prolog, batch script and steps, Epilog; also across restarts of the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec

from fairbank.cluster.job import Run
from fairbank.core.errors import Conflict, FairbankError, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.node.control_group import remove_group
from fairbank.wlm.node.job_directory import JobDirectories
from fairbank.wlm.node.launcher_process import LauncherProcess
from fairbank.wlm.node.memory_group import remove_run_group
from fairbank.wlm.node.node_step import NodeStep
from fairbank.wlm.node.orphans import device_group_of, end_orphans, group_of, run_memory_group
from fairbank.wlm.node.programs import program_environment, run_program
from fairbank.wlm.node.run_store import RunStore, StoredRun
from fairbank.wlm.node.settings import NodeSettings
from fairbank.wlm.node.step_process import StepProcess
from fairbank.wlm.node.usage import proportional_bytes, resident_bytes
from fairbank.wlm.protocol.messages import (
    SIGKILL,
    SIGTERM,
    EndCause,
    EndJob,
    EndStep,
    ListedProcess,
    RunOutcome,
    RunState,
    RunStatus,
    RunUsage,
    SignalJob,
    StartStep,
    StepStatus,
    WarnProcess,
)
from fairbank.wlm.stepd.processes import Process, process_table
from fairbank.wlm.stepd.step import read_start, read_step

STORE_SECONDS = 1.0  # pause between two attempts to store an end on a full disk
STEPS_ENDED = "the job has ended"
"""Reason of steps that are ended with the batch script of their job."""

_log = logging.getLogger(__name__)

StartTask = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
"""Function that starts a task, and ends the daemon if the task fails."""


class NodeContext(NamedTuple):
    """Node of a run. `notify` gets the status of the run, or of a step, after each change."""

    name: str
    boot_id: str
    settings: NodeSettings
    directories: JobDirectories
    launcher: LauncherProcess
    store: RunStore
    notify: Callable[[RunStatus | StepStatus], None]
    start_task: StartTask


class NodeRun:
    """Run that the node has accepted.

    Invariants: `status` is what the controller knows, or will know after the next registration.
    `steps` are those beside the batch script that the controller has not forgotten, by number, and
    `_step_tasks` bring them to their ends. `_early_ends` are the requests to end a step that came
    before it was written down, by its number. `_begun`: the run has begun, or will not.
    `_memory` is the limit in bytes, None until it is read.
    """

    def __init__(self, stored: StoredRun, context: NodeContext) -> None:
        self._stored, self._context = stored, context
        self.directory = context.directories.path(stored.run)
        state: RunState = "running" if read_start(str(self.directory)) else "prolog"
        self.status = RunStatus(
            run=stored.run,
            state="finished" if stored.end else state,
            end=stored.end,
            epilog_status=stored.epilog_status,
        )
        kill_wait = context.settings.kill_wait
        self._script = StepProcess(self.directory, str(stored.run), kill_wait)
        self.steps = {
            number: self._new_step(StepStatus(run=stored.run, step=number))
            for number in (() if stored.end else context.directories.steps(stored.run))
        }
        self._step_tasks: set[asyncio.Task[None]] = set()
        self._early_ends: dict[int, list[EndStep]] = {}
        self._end: RunOutcome | None = stored.end
        self._begun = asyncio.Event()
        self._memory: int | None = None

    @property
    def run(self) -> Run:
        return self._stored.run

    # ------------------------------------------------------------------ from start to end

    async def start(self, *, has_script: bool) -> None:
        """Bring a new run to its end. One without a script here has a program that only waits."""
        end = await self._run_prolog()
        if end is None:
            self._change("starting")
            end = await self._script.launch(
                self._context.launcher, self._note_running, waits_for_tasks=has_script
            )
        await self._finish(end)

    async def resume(self) -> None:
        """Bring a run of an earlier daemon to its end. Nothing is started that had not started."""
        if self._stored.boot_id != self._context.boot_id:
            end = self._script.end_without_daemon(
                "node_failure", "the node was booted while the job ran"
            )
            self._begun.set()
            await self._store(end, epilog_status=None)
            return
        for step in self.steps.values():
            self._add_task(step.resume())
        if self._script.has_never_started():
            await end_orphans(self.directory, None, self._context.settings.kill_wait)  # a Prolog
            text = "the node daemon was killed during the start"
            await self._finish(self._script.end_without_daemon("launch", text))
        else:
            end = await self._script.follow(self._note_running)
            await end_orphans(self.directory, None, self._context.settings.kill_wait)  # an Epilog
            await self._finish(end)

    def _note_running(self) -> None:
        self._begun.set()
        if self.status.state != "running":
            self._change("running")

    async def _run_prolog(self) -> RunOutcome | None:
        """Run the Prolog. Return the end of the run if it must not start then."""
        settings = self._context.settings
        status = await run_program(settings.prolog, self._environment(), settings.prolog_timeout)
        if status != 0:
            return self._script.end_without_daemon(
                "prolog", f"the Prolog ended with the status {status >> 8}:{status & 0x7F}"
            )
        match self._script.end_request:
            case (float() | int() as seconds, reason) if seconds <= 0:
                return self._script.end_without_daemon("request", reason)
        return None

    async def _finish(self, end: RunOutcome) -> None:
        """End the steps, run the Epilog, and store the end."""
        self._end = end  # no step begins from here on
        self._begun.set()
        for step in list(self.steps.values()):  # one that has ended may be forgotten meanwhile
            await step.process.end(0.0, STEPS_ENDED)
        if self._step_tasks:
            await asyncio.wait(self._step_tasks)
        for group in (group_of(self.directory), device_group_of(self.directory)):
            remove_group(group)
        remove_run_group(run_memory_group(self.directory))
        self._change("epilog", end=end)
        settings = self._context.settings
        status = await run_program(settings.epilog, self._environment(), settings.epilog_timeout)
        await self._store(end, status)

    async def _store(self, end: RunOutcome, epilog_status: int | None) -> None:
        stored = msgspec.structs.replace(self._stored, end=end, epilog_status=epilog_status)
        logged = ""  # a full disk lasts for hours, and needs one line
        while True:
            try:
                self._context.store.put(stored)
                break
            except sqlite3.Error as error:
                if str(error) != logged:
                    logged = str(error)
                    _log.error("cannot store the end of %s, will try again: %s", self.run, error)
                await asyncio.sleep(STORE_SECONDS)
        self._change("finished", end=end, epilog_status=epilog_status)

    def _change(self, state: RunState, **fields: object) -> None:
        self.status = RunStatus(run=self.run, state=state, **fields)  # type: ignore[arg-type]
        self._context.notify(self.status)

    def _environment(self) -> Mapping[str, str]:
        return program_environment(self.run, self._context.name, self.directory)

    # ------------------------------------------------------------------ steps

    async def start_step(self, start: StartStep) -> None:
        """Write a step down and begin. A repeated request finds it and changes nothing.

        Raises:
            Conflict: the run has ended, or has not begun.
            FairbankError: the step cannot be written down.
        """
        if start.step in self.steps:
            return
        ends = self._early_ends.setdefault(start.step, [])
        try:
            await self._begun.wait()  # the controller need not know of it yet
            seconds = await self._script.seconds_left()
            cancel = next((end for end in ends if end.number in (0, SIGKILL)), None)
            if cancel is not None:
                self._end_unstarted(start.step, "request", cancel.reason, SIGTERM)
                return
            self._create_step(start, seconds)
        except FairbankError as error:
            # The controller may have connected again since it sent the request.
            self._end_unstarted(start.step, "launch", error.message)
            raise
        finally:
            self._early_ends.pop(start.step, None)
        while ends:
            await self.end_step(ends.pop(0))

    def _end_unstarted(
        self, step: int, cause: EndCause, text: str, status: int | None = None
    ) -> None:
        end = RunOutcome(cause=cause, status=status, text=text, ended=time.time())
        self._context.notify(StepStatus(run=self.run, step=step, end=end))

    def _create_step(self, start: StartStep, seconds: float | None) -> None:
        """Write a step down and begin, unless it is known. `seconds` are those of its run."""
        if start.step in self.steps:
            return
        is_over = self._end is not None or self._script.is_ending
        if self.status.state != "running" or is_over:
            raise Conflict(f"{self.run} is not running here", remedy="see its state: squeue")
        kill_wait = self._context.settings.kill_wait
        self._context.directories.create_step(start, kill_wait=kill_wait, seconds=seconds)
        step = self._new_step(StepStatus(run=self.run, step=start.step))
        step.process.is_suspended = self._script.is_suspended
        self.steps[start.step] = step
        self._add_task(step.start(self._context.launcher))

    def _new_step(self, status: StepStatus) -> NodeStep:
        context = self._context
        directory = context.directories.step_path(status.run, status.step)
        return NodeStep(directory, status, context.settings.kill_wait, context.notify)

    def _add_task(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._context.start_task(coroutine)
        self._step_tasks.add(task)
        task.add_done_callback(self._step_tasks.discard)

    @property
    def step_statuses(self) -> list[StepStatus]:
        """Statuses of its steps, also of those that wait for its begin."""
        waiting = self._early_ends.keys() - self.steps.keys()
        return [
            *(step.status for step in self.steps.values()),
            *(StepStatus(run=self.run, step=number) for number in sorted(waiting)),
        ]

    async def end_step(self, request: EndStep) -> None:
        """End a step, or signal its processes, as soon as it has started.

        One that has ended stays as it is.
        """
        if request.step in self._early_ends:
            self._early_ends[request.step].append(request)
            return
        step = self.steps.get(request.step)
        if step is None or step.status.end is not None:
            return
        if request.number and not step.process.is_connected:
            step.process.signals.append(request.number)
        elif request.number:
            await step.process.signal(request.number, only_script=False)
        else:
            await step.process.end(0.0, request.reason)

    def forget_step(self, number: int) -> None:
        """Forget a step that has ended, as soon as its streams are not served."""
        step = self.steps.get(number)
        if step is not None and step.status.end is not None:
            step.is_forgotten = True
            self.remove_steps()

    def remove_steps(self) -> None:
        """Remove the steps that are forgotten and whose streams are not served any more."""
        for number, step in list(self.steps.items()):
            if step.is_forgotten and step.remove():
                del self.steps[number]

    def remove(self) -> bool:
        """Remove its directory. Return False while streams of a step are served."""
        if not all(step.remove() for step in self.steps.values()):
            return False
        self._context.directories.remove(self.run)
        return True

    # ------------------------------------------------------------------ requests

    async def signal(self, request: SignalJob) -> None:
        """Signal the processes. Raises Conflict if the script is meant, and there is none."""
        if request.target != "steps":
            only_script = request.target == "script"
            await self._script.signal(request.number, only_script=only_script)
        if request.target != "script":
            for step in self._running_steps():
                with suppress(Conflict, Unavailable):  # it has just ended
                    await step.process.signal(request.number, only_script=False)

    async def warn(self, request: WarnProcess) -> None:
        """Have a process signalled before the time limit. Raises Conflict if it is not here."""
        of_run = self.processes(process_table())
        step = next((number for number, process in of_run if process.pid == request.pid), None)
        process = self._script if step is None else self.steps[step].process
        await process.warn(request.pid, request.number, request.seconds)

    async def suspend(self, *, suspended: bool) -> None:
        """Suspend all that runs, or let it go on; also what starts later."""
        for process in (self._script, *(step.process for step in self.steps.values())):
            await process.suspend(suspended=suspended)

    async def end(self, request: EndJob) -> None:
        """End the run, or change its time limit; before it has started, as soon as it starts."""
        await self._script.end(request.seconds, request.reason)
        for step in self._running_steps():
            await step.process.end(request.seconds, request.reason)

    def _running_steps(self) -> list[NodeStep]:
        return [step for step in self.steps.values() if step.process.is_connected]

    def notify(self, text: str) -> None:
        """Write a line to the error output of the job.

        Raises:
            Conflict: the job has no processes.
            FairbankError: the file cannot be written now.
        """
        if not self._script.is_connected:
            raise self._script.no_processes()
        step = read_step(str(self.directory))
        path = step.error or step.output
        line = "".join(letter if letter.isprintable() else "?" for letter in text) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(os.open(path, flags), "wb", buffering=0) as file:
                file.write(line.encode(errors="replace"))
        except OSError as error:
            raise translate_os_error(error, f"cannot write to {path}") from error

    async def seconds_left(self) -> float | None:
        """Return the time until the time limit; None if there is no limit, or nothing runs."""
        return await self._script.seconds_left()

    # ------------------------------------------------------------------ processes

    @property
    def usage(self) -> RunUsage:
        """Usage of the batch script."""
        return self._script.usage

    @property
    def step_usages(self) -> dict[int, RunUsage]:
        """Usage of the steps that run, by number."""
        return {
            number: step.process.usage
            for number, step in self.steps.items()
            if step.process.is_connected
        }

    async def ended_cpu_seconds(self) -> dict[StepProcess, float]:
        """Return the CPU time of the processes that have ended, of what runs."""
        every = [self._script, *(step.process for step in self._running_steps())]
        seconds = await asyncio.gather(*(one.ended_cpu_seconds() for one in every))
        return {one: of for one, of in zip(every, seconds, strict=True) if of is not None}

    def sample(self, ended: Mapping[StepProcess, float], table: Mapping[int, Process]) -> None:
        """Take a sample of the usage, and report processes that cannot be ended."""
        for process, seconds in ended.items():
            process.sample(seconds, table)
        self.remove_steps()
        settings = self._context.settings
        # Also those that are missing in `ended`, since their step daemon did not answer in time.
        every = (self._script, *(step.process for step in self.steps.values()))
        pids = tuple(
            process.pid
            for one in every
            if one.is_connected and one.kill_seconds > settings.unkillable_timeout
            for process in one.processes(table)
        )
        before = self.status.unkillable
        # Without those that are gone: the controller drains the node for each report of some.
        if pids != before:
            self.status = msgspec.structs.replace(self.status, unkillable=pids)
            self._context.notify(self.status)
        if not {*before}.issuperset(pids):
            self._context.start_task(self._run_unkillable_program(settings))

    def add_gpu_use(self, parts: dict[int, float], since: float) -> None:
        """Count for how long the GPUs were busy: for the first step that has them, else the script.

        Args:
            parts: busy part of each GPU of the node that tells it, without those of other runs.
            since: time of the sample before, on the monotonic clock.
        """
        for process in (*(step.process for step in self._running_steps()), self._script):
            process.add_gpu_use(parts, since)

    async def limit_memory(self, table: Mapping[int, Process]) -> None:
        """End what has most memory, if the run has more than its limit.

        The script may go on when a step is ended.
        """
        limit = self.memory_limit()
        if not limit:
            return
        running = [self._script, *(step.process for step in self._running_steps())]
        processes = {one: one.processes(table) for one in running}
        for count in (resident_bytes, proportional_bytes):
            used = {one: count(own) for one, own in processes.items()}
            if sum(used.values()) <= limit:
                return
        total = sum(used.values())
        _log.warning("%s uses %d bytes of memory, and has %d", self.run, total, limit)
        await max(used, key=used.__getitem__).end_for_memory(total, limit)

    def memory_limit(self) -> int:
        """Return the memory that it has in bytes; 0: no limit, or the kernel keeps it."""
        if self._memory is None:
            try:
                step = read_step(str(self.directory))
                self._memory = 0 if step.memory_group else step.memory << 20
            except (OSError, ValueError):  # it ends just now, or did with a crash of the host
                return 0
        return self._memory

    async def _run_unkillable_program(self, settings: NodeSettings) -> None:
        program, seconds = settings.unkillable_program, settings.epilog_timeout
        await run_program(program, self._environment(), seconds)

    def processes(self, table: Mapping[int, Process]) -> list[tuple[int | None, Process]]:
        """Return the processes of the run among all processes, with their step; None: the script.

        There are none after its end.
        """
        processes: list[tuple[int | None, Process]] = [
            (None, process) for process in self._script.processes(table)
        ]
        for number, step in self.steps.items():
            processes += [(number, process) for process in step.process.processes(table)]
        return processes

    async def list_processes(self) -> list[ListedProcess]:
        """Return the processes of the run with their tasks: of each step its tasks first."""
        steps = [self._script, *(step.process for step in self.steps.values())]
        answers = await asyncio.gather(*(process.tasks() for process in steps))
        tasks = {pid: task for answer in answers for pid, task in answer.items()}
        # Stable: the steps stay in their order, the script first.
        processes = sorted(
            self.processes(process_table()),
            key=lambda item: (-1 if item[0] is None else item[0], item[1].pid not in tasks),
        )
        return [
            ListedProcess(process.pid, step, *tasks.get(process.pid, ()))
            for step, process in processes
        ]
