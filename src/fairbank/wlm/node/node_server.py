"""Node: its runs, its socket, and the requests of the controller and of commands."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import fairbank
from fairbank.cluster.job import Run
from fairbank.core.errors import Conflict, FairbankError, InvalidInput, NotFound, Unavailable
from fairbank.core.slurm_numbers import parse_debug_level
from fairbank.rest.auth.peers import is_own_user
from fairbank.rest.server.log import set_debug_level
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.statefile.local_disk import check_local_disk
from fairbank.wlm.node.control_group import ControlGroups, check_processes, own_groups, remove_group
from fairbank.wlm.node.devices.device_group import denial, device_groups
from fairbank.wlm.node.devices.gpus import GpuDevice, HostGpus
from fairbank.wlm.node.job_directory import JobDirectories
from fairbank.wlm.node.launcher_process import LauncherProcess
from fairbank.wlm.node.memory_group import (
    SCRIPT_GROUP,
    create_step_group,
    host_parents,
    limit_of,
    memory_groups,
    memory_version,
    remove_run_group,
)
from fairbank.wlm.node.node_run import NodeContext, NodeRun, StartTask
from fairbank.wlm.node.run_store import RunStore, StoredRun
from fairbank.wlm.node.settings import HostedNode, NodeSettings
from fairbank.wlm.node.usage import HostState, part_of, read_host
from fairbank.wlm.protocol.connection import Connection
from fairbank.wlm.protocol.messages import (
    Accepted,
    EndJob,
    EndStep,
    FindJob,
    ForgetRun,
    ForgetStep,
    Hello,
    JobOfProcess,
    ListProcesses,
    Message,
    NotifyJob,
    PollNode,
    PollUsage,
    ProcessList,
    Registration,
    RunStatus,
    SetDebug,
    SignalJob,
    StartJob,
    StartStep,
    StepStatus,
    SuspendRun,
    UsageReport,
    WarnProcess,
    error_message,
)
from fairbank.wlm.stepd.processes import Process, boot_id, process_table

_log = logging.getLogger(__name__)


class NodeServer:
    """Node that the daemon serves. Connected controllers learn each change of a run."""

    def __init__(
        self,
        hosted: HostedNode,
        settings: NodeSettings,
        host: HostGpus,
        launcher: LauncherProcess,
        start_task: StartTask,
    ) -> None:
        """Open the state of the node. Raises FairbankError.

        Args:
            hosted: name, directories and resources.
            settings: settings of all nodes of the daemon.
            host: GPUs of the host.
            start_task: starts a task that must not fail.
        """
        self._hosted, self._host, self._start_task = hosted, host, start_task
        check_local_disk(Path(hosted.spool), field="spool")
        spool = Path(hosted.spool)
        self._gpus = host.of_node(hosted.name)
        directories = JobDirectories(
            spool,
            hosted.name,
            self._gpus,
            task_prolog=settings.task_prolog,
            task_epilog=settings.task_epilog,
        )
        store = RunStore(spool)
        parents = own_groups() if settings.control_groups else ()
        self._groups = ControlGroups(spool, parents, check_processes)
        may_limit = settings.control_groups and settings.over_memory_kill
        self._memory = memory_groups(spool, host_parents() if may_limit else ())
        self._devices = device_groups(
            spool, allowed=settings.control_groups and host.has_devices(hosted.name)
        )
        self._context = NodeContext(
            hosted.name, boot_id(), settings, directories, launcher, store, self._notify, start_task
        )
        self._runs = {stored.run: NodeRun(stored, self._context) for stored in store.runs()}
        directories.remove_others(self._runs)
        self._forgotten: list[NodeRun] = []
        self._connections: set[Connection] = set()
        self._started = time.time()
        self._reported = self._resources(read_host())

    async def serve(self) -> None:
        """Go on with the runs of an earlier daemon, and listen."""
        for run in self._runs.values():
            if run.status.state != "finished":
                self._start_task(run.resume())
        hello = Hello(role="node", name=self._hosted.name)
        listener = bind_unix(Path(self._hosted.socket), mode=0o600)
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: Connection(self, hello, is_own_user), sock=listener
        )

    def close(self) -> None:
        """Stop listening and close the state; the jobs go on.

        What serves the output of forgotten runs ends as their directories go.
        """
        for run in self._forgotten:
            self._context.directories.remove(run.run)
        self._server.close()
        for connection in list(self._connections):
            connection.close()
        with suppress(OSError):
            Path(self._hosted.socket).unlink()
        self._context.store.close()

    # ------------------------------------------------------------------ connections

    def on_hello(self, connection: Connection, hello: Hello) -> None:
        self._connections.add(connection)
        if hello.role == "controller":
            _log.info("the controller is connected to %s", self._hosted.name)
            connection.send(self._registration())

    def on_close(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def on_message(self, connection: Connection, message: Message, number: int) -> None:
        self._start_task(self._answer(connection, message, number))

    async def _answer(self, connection: Connection, message: Message, number: int) -> None:
        try:
            answer = await self._carry_out(message)
        except FairbankError as error:
            answer = error_message(error)
        connection.send(answer, number)

    def _notify(self, status: RunStatus | StepStatus) -> None:
        if isinstance(status, RunStatus):
            _log.info("%s on %s: %s", status.run, self._hosted.name, status.state)
        for connection in self._connections:
            if connection.hello is not None and connection.hello.role == "controller":
                connection.send(status)

    def _registration(self) -> Registration:
        host = read_host()
        self._reported = cpus, memory, *_ = self._resources(host)
        return Registration(
            node=self._hosted.name,
            release=fairbank.__version__,
            started=self._started,
            boot_id=self._context.boot_id,
            control_groups=self._groups.parent is not None,
            device_groups=self._devices.parent is not None,
            memory_limits=self._memory_limits,
            gpus=self._host.present(self._hosted.name),
            runs=tuple(run.status for run in self._runs.values()),
            steps=tuple(status for run in self._runs.values() for status in run.step_statuses),
            spool=self._hosted.spool,
            **host._replace(cpus=cpus, memory=memory)._asdict(),
        )

    @property
    def _memory_limits(self) -> str:
        """Words for the way in which jobs are held to their memory; empty: they are not."""
        if not self._context.settings.over_memory_kill:
            return ""
        version = memory_version(self._memory)
        return f"control groups of version {version}" if version else "samples"

    def _resources(self, host: HostState) -> tuple[int, int, int, tuple[str, ...]]:
        """Return the CPUs, memory, disk and GPUs of the node."""
        hosted, settings = self._hosted, self._context.settings
        cpus = part_of(host.cpus, hosted.cpus, settings.host_cpus)
        memory = part_of(host.memory, hosted.memory, settings.host_memory)
        return cpus, memory, host.tmp, self._host.present(hosted.name)

    def report_changes(self, host: HostState) -> None:
        """Register again if the host has lost or got resources."""
        if self._resources(host) != self._reported:
            registration = self._registration()
            for connection in self._connections:
                if connection.hello is not None and connection.hello.role == "controller":
                    connection.send(registration)

    # ------------------------------------------------------------------ requests

    async def _carry_out(self, message: Message) -> Message:
        """Carry out a request and return its answer. Raises FairbankError."""
        match message:
            case StartJob():
                self._start_job(message)
            case StartStep(run=run):
                await self._known(run).start_step(message)
            case EndStep(run=run):
                await self._known(run).end_step(message)
            case ForgetStep(run=run, step=step):
                self._known(run).forget_step(step)
            case SignalJob(run=run):
                await self._known(run).signal(message)
            case SuspendRun(run=run, suspended=suspended):
                await self._known(run).suspend(suspended=suspended)
            case EndJob(run=run):
                await self._known(run).end(message)
            case NotifyJob(run=run, text=text):
                self._known(run).notify(text)
            case ForgetRun(run=run):
                self._forget(run)
            case PollNode():
                return self._registration()
            case PollUsage():
                return await self._usage_report()
            case ListProcesses(run=run):
                return ProcessList(processes=tuple(await self._known(run).list_processes()))
            case FindJob(pid=pid):
                return await self._job_of(pid)
            case WarnProcess(run=run):
                await self._known(run).warn(message)
            case SetDebug(level=level):
                set_debug_level(parse_debug_level(level, "level"))
                _log.info("the debug level is %s", level)
            case _:
                text = f"{type(message).__name__} is not a request to a node"
                raise InvalidInput(text, remedy="send it to another daemon")
        return Accepted()

    async def _usage_report(self) -> UsageReport:
        await self.sample()
        running = (run for run in self._runs.values() if run.status.state == "running")
        runs = [(run.run, run.usage, run.step_usages) for run in running]
        return UsageReport(
            runs=tuple((run, usage) for run, usage, _ in runs),
            steps=tuple(
                (run, number, usage) for run, _, steps in runs for number, usage in steps.items()
            ),
        )

    def _known(self, run: Run) -> NodeRun:
        if (known := self._runs.get(run)) is None:
            text = f"{run} is not known on node {self._hosted.name}"
            raise NotFound(text, field="run", remedy="see where it runs: squeue")
        return known

    def _start_job(self, start: StartJob) -> None:
        """Store the start and begin. A repeated request finds the run and changes nothing."""
        if start.run in self._runs:
            return
        context = self._context
        stored = StoredRun(run=start.run, boot_id=context.boot_id)
        name = context.directories.path(start.run).name
        group = devices = memory = ""
        try:
            if start.memory:
                memory = self._memory.create(name, limit_of(start.memory << 20))
            of_script = create_step_group(memory, SCRIPT_GROUP)
            # In version 2 a process is in one group.
            is_unified = memory_version(self._memory) == 2
            group = of_script if is_unified and memory else self._groups.create(name)
            hidden = self._host.hidden_files(self._gpus, start.gpus)
            devices = self._devices.create(name, denial(hidden))
            context.directories.create(
                start,
                kill_wait=context.settings.kill_wait,
                group=group,
                devices=devices,
                memory_group=of_script,
            )
            context.store.put(stored)
        except (FairbankError, sqlite3.Error) as error:
            remove_run_group(memory)
            remove_group(group)
            remove_group(devices)
            context.directories.remove(start.run)
            if isinstance(error, FairbankError):
                raise
            text = f"node {self._hosted.name} cannot store the start: {error}"
            raise Unavailable(text, remedy="free disk space under its spool directory") from error
        self._runs[start.run] = run = NodeRun(stored, context)
        self._start_task(run.start(has_script=bool(start.script)))

    def _forget(self, run: Run) -> None:
        known = self._runs.get(run)
        if known is None:
            return
        if known.status.state != "finished":
            text = f"{run} has not finished on node {self._hosted.name}"
            raise Conflict(text, field="run", remedy="wait until it is finished")
        try:
            self._context.store.delete(run)
        except sqlite3.Error as error:
            raise Unavailable(f"cannot forget {run}: {error}", remedy="send it again") from error
        self._forgotten.append(self._runs.pop(run))
        self._remove_forgotten()

    def _remove_forgotten(self) -> None:
        """Remove the directories of forgotten runs, but not while an srun may come for output."""
        self._forgotten = [run for run in self._forgotten if not run.remove()]

    async def _job_of(self, pid: int) -> JobOfProcess:
        table = process_table()
        for run in self._runs.values():
            if any(process.pid == pid for _, process in run.processes(table)):
                return JobOfProcess(run=run.run, seconds=await run.seconds_left())
        return JobOfProcess()

    @property
    def has_runs(self) -> bool:
        """True if there are runs that have not been forgotten."""
        return bool(self._runs)

    def has_memory_limits(self) -> bool:
        """Return True if a run has a limit that the kernel does not keep."""
        return any(run.memory_limit() for run in self._runs.values())

    async def limit_memory(self, table: Mapping[int, Process]) -> None:
        """End what has made a run use more memory than it has."""
        for run in list(self._runs.values()):
            await run.limit_memory(table)

    def add_gpu_use(self, parts: Mapping[GpuDevice, float], since: float) -> None:
        """Count for how long the GPUs of runs were busy since a time of the monotonic clock."""
        numbers = enumerate(self._gpus.gpus)
        left = {number: parts[gpu] for number, gpu in numbers if gpu in parts}
        for run in self._runs.values() if left else ():
            run.add_gpu_use(left, since)

    async def sample(self) -> None:
        """Take a sample of the usage of all runs."""
        runs = list(self._runs.values())
        # Before the processes are read: a process that ends between counts in neither, not twice.
        ended = await asyncio.gather(*(run.ended_cpu_seconds() for run in runs))
        table = process_table()
        for run, seconds in zip(runs, ended, strict=True):
            run.sample(seconds, table)
        self._remove_forgotten()
