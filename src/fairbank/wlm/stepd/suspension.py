"""Suspension of a step: its processes are stopped, and so is the clock of its time limit."""

from __future__ import annotations

import signal
from collections.abc import Callable

from fairbank.wlm.stepd.processes import Process, send_signal

_STOP_SECONDS = 0.05, 1.0
"""First and longest pause between two looks for processes that run."""


class Suspension:
    """Suspension, which may begin and end several times.

    Processes that were just forked, or that a user continues, are stopped again.

    Invariants: `since` is the monotonic time at which it began, None while the step runs; `due` is
    the time of the next look, None then, too.
    """

    def __init__(self, processes: Callable[[], list[Process]]) -> None:
        """`processes` returns those of the step."""
        self._processes = processes
        self.since: float | None = None
        self.due: float | None = None
        self._pause = _STOP_SECONDS[0]

    def begin(self, now: float) -> None:
        """Stop all processes. Repeated, it changes nothing."""
        if self.since is None:
            self.since, self._pause = now, _STOP_SECONDS[0]
            self._stop(now)

    def act(self, now: float) -> None:
        """Stop what runs, if it is time for that."""
        if self.due is not None and now >= self.due:
            self._stop(now)

    def _stop(self, now: float) -> None:
        running = [process for process in self._processes() if not process.is_stopped]
        send_signal(running, signal.SIGSTOP)
        self.due = now + self._pause
        self._pause = min(2 * self._pause, _STOP_SECONDS[1])

    def end(self, now: float) -> float:
        """Let all processes go on. Return for how many seconds they did not."""
        if self.since is None:
            return 0.0
        seconds, self.since, self.due = now - self.since, None, None
        send_signal(self._processes(), signal.SIGCONT)
        return seconds
