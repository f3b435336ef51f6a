"""Tasks of a daemon that ends when one of them fails."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import signal
from collections.abc import Callable, Coroutine

END_SECONDS = 15.0
"""Time for the end of a daemon: the supervisor of a cluster kills it after 20 s."""
CLOSE_SECONDS = 10.0
"""Time that tasks have to end after they are cancelled."""

_log = logging.getLogger(__name__)


def limit_end(seconds: float = END_SECONDS) -> None:
    """End the process after some seconds, whatever its threads and peers do by then.

    It writes what it waits for to the standard error.
    """
    faulthandler.dump_traceback_later(seconds, exit=True)


class DaemonTasks:
    """Tasks that must not fail: a daemon whose task fails stops, and is started again."""

    def __init__(self, daemon: str, stop: Callable[[], None]) -> None:
        """Begin without tasks.

        Args:
            daemon: the daemon in the log line about a task that failed.
            stop: called then.
        """
        self._daemon, self._stop = daemon, stop
        self._tasks: set[asyncio.Task[None]] = set()
        self._bounds_end = False

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT: the process is the daemon's, so its end is bounded."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self._bounds_end = True

    def stop(self) -> None:
        """Stop the daemon. The time for its end begins with the first call."""
        if self._bounds_end:
            self._bounds_end = False
            limit_end()
        self._stop()

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task, and keep it until its end."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in list(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel all tasks, and wait for their ends, but not for long."""
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical(
                "%s has a bug and stops, to be started again", self._daemon, exc_info=error
            )
            self.stop()
