"""Node daemon: one launcher, the nodes of this host, samples of their usage, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine

from fairbank.wlm.node.launcher_process import LauncherProcess
from fairbank.wlm.node.node_server import NodeServer
from fairbank.wlm.node.settings import NodeSettings

_log = logging.getLogger(__name__)


class NodeDaemon:
    """Node daemon. It ends when a task fails, so that its supervisor starts it again: the jobs go
    on, and the next daemon finds them.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until SIGTERM, SIGINT or a request. Raises FairbankError if it cannot start.

        Args:
            ready: called when all nodes listen.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        async with contextlib.AsyncExitStack() as stack:
            launcher = LauncherProcess()
            stack.callback(launcher.close)
            nodes = []
            for hosted in self._settings.nodes:
                node = NodeServer(
                    hosted, self._settings, launcher, self._start_task, self._stopping.set
                )
                await node.serve()
                stack.callback(node.close)
                nodes.append(node)
            stack.callback(self._cancel)
            self._start_task(self._sample(nodes))
            ready()
            await self._stopping.wait()

    async def _sample(self, nodes: list[NodeServer]) -> None:
        while True:
            await asyncio.sleep(self._settings.sample_seconds)
            for node in nodes:
                await node.sample()

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("the node daemon has a bug and stops", exc_info=error)
            self._stopping.set()

    def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()
