"""Starts of the tasks of a step, one after the other, while its daemon serves the others."""

from __future__ import annotations

import os
import signal
from collections import deque

from fairbank.wlm.stepd.signals import block_all, set_blocked
from fairbank.wlm.stepd.step import Step
from fairbank.wlm.stepd.streams import StreamEnds
from fairbank.wlm.stepd.task import open_streams, run_task


class TaskStarts:
    """Tasks that are not started yet. Those that are started wait until `allow` was called.

    Invariant: the pipes for the start and for failures are open while a task is left.
    """

    def __init__(self, directory: str, step: Step) -> None:
        self._directory, self._step = directory, step
        self._tasks = deque(enumerate(step.all_tasks))
        self._go_read, self._go = os.pipe()
        self.failures, self._failure = os.pipe()

    @property
    def is_over(self) -> bool:
        """True if no task is left."""
        return not self._tasks

    def start_next(self) -> tuple[int, int, StreamEnds]:
        """Start the next task. Return its process, its rank, and the daemon's ends of its streams.

        Raises OSError; the task is then still left.
        """
        local, task = self._tasks[0]
        ours, ends = open_streams(self._step, local, task)
        # The new process ignores signals as this one does, until it gives them their defaults.
        # Blocked until then, they stay pending; the kernel would discard those that it ignores.
        mask = block_all()
        try:
            pid = os.fork()
        except OSError:
            set_blocked(mask)
            _close(ours, ends)
            raise
        if pid == 0:
            os.close(self._go)
            signal.set_wakeup_fd(-1)
            run_task(self._step, local, task, ends, self._directory, self._go_read, self._failure)
        set_blocked(mask)
        self._tasks.popleft()
        _close(ends)
        return pid, task.rank, ours

    def allow(self) -> None:
        """Let all tasks execute their programs, as soon as they are started."""
        os.write(self._go, b"\n" * (len(self._tasks) + 1))  # the first one is started

    def drop(self) -> list[int]:
        """Return the ranks of the tasks that are left. They will not be started."""
        ranks = [task.rank for _, task in self._tasks]
        self._tasks.clear()
        return ranks

    def close(self) -> None:
        """Close the pipes: no task is left. `failures` ends when all have been executed."""
        for end in (self._go_read, self._go, self._failure):
            os.close(end)


def _close(*sides: StreamEnds) -> None:
    for end in {end for side in sides for end in side[:3] if end is not None}:
        os.close(end)
