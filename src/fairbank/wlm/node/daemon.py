"""Node daemon: one launcher, the nodes of this host, samples of their usage, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from fairbank.rest.server.daemon_tasks import DaemonTasks
from fairbank.rest.server.log import set_debug_levels
from fairbank.wlm.node.devices.gpu_use import busy_parts
from fairbank.wlm.node.devices.gpus import HostGpus
from fairbank.wlm.node.launcher_process import LauncherProcess
from fairbank.wlm.node.node_server import NodeServer
from fairbank.wlm.node.settings import NodeSettings
from fairbank.wlm.node.usage import read_host
from fairbank.wlm.stepd.processes import process_table

HOST_SECONDS = 1.0
"""Pause between two looks at the resources of the host, and at the memory of jobs."""


class NodeDaemon:
    """Node daemon. It ends when a task fails, so that its supervisor starts it again: the jobs go
    on, and the next daemon finds them.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._stopping = asyncio.Event()
        self._tasks = DaemonTasks("the node daemon", self._stopping.set)
        set_debug_levels(settings.debug, settings.syslog_debug, daemon="slurmd")

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until SIGTERM, SIGINT or a request. Raises FairbankError if it cannot start.

        Args:
            ready: called when all nodes listen.
        """
        self._tasks.handle_signals()
        async with contextlib.AsyncExitStack() as stack:
            launcher = LauncherProcess()
            stack.callback(launcher.close)
            nodes = []
            gpus = HostGpus(
                {hosted.name: hosted.gpus for hosted in self._settings.nodes},
                self._settings.host_gpus,
                self._settings.gpu_root,
            )
            for hosted in self._settings.nodes:
                node = NodeServer(hosted, self._settings, gpus, launcher, self._tasks.start)
                await node.serve()
                stack.callback(node.close)
                nodes.append(node)
            stack.callback(self._tasks.cancel)
            self._tasks.start(self._sample(nodes, gpus))
            self._tasks.start(_watch_host(nodes))
            if self._settings.over_memory_kill:
                self._tasks.start(_watch_memory(nodes))
            ready()
            await self._stopping.wait()

    async def _sample(self, nodes: list[NodeServer], host: HostGpus) -> None:
        since = time.monotonic()
        while True:
            await asyncio.sleep(self._settings.sample_seconds)
            has_jobs = host.devices and any(node.has_runs for node in nodes)
            parts = await busy_parts(host.devices, host.root) if has_jobs else {}
            for node in nodes:
                node.add_gpu_use(parts, since)
            since = time.monotonic()
            for node in nodes:
                await node.sample()


async def _watch_memory(nodes: list[NodeServer]) -> None:
    """End what has made a job use more memory than it has."""
    while True:
        await asyncio.sleep(HOST_SECONDS)
        if not any(node.has_memory_limits() for node in nodes):
            continue
        table = process_table()
        for node in nodes:
            await node.limit_memory(table)


async def _watch_host(nodes: list[NodeServer]) -> None:
    """Let nodes register again when the host has lost or got resources."""
    while True:
        await asyncio.sleep(HOST_SECONDS)
        host = read_host()
        for node in nodes:
            node.report_changes(host)
