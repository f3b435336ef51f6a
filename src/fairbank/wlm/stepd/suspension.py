"""Suspension of a step: its processes are stopped, and so is the clock of its time limit."""

from __future__ import annotations

import signal
from collections.abc import Callable

from fairbank.wlm.stepd.processes import Process, send_signal
from fairbank.wlm.stepd.step import TIME_LIMIT

_STOP_SECONDS = 0.05, 1.0
"""First and longest pause between two looks for processes that run."""


class Suspension:
    """Suspension, which may begin and end several times.

    Processes that were just forked, or that a user continues, are stopped again.

    Invariants: `since` is the monotonic time at which it began, None while the step runs; `due` is
    the time of the next search for processes, None then, too.
    """

    def __init__(self, processes: Callable[[], list[Process]]) -> None:
        """Begin with a step that runs. `processes` returns its processes."""
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


class EndTime:
    """Time at which a step is ended. That of its time limit stands still while it is suspended.

    Invariant: `_at` is the monotonic time, as far as it was delayed; None: there is none.
    """

    def __init__(self, suspension: Suspension, seconds: float | None, now: float) -> None:
        """`seconds` is the time limit; None: there is none."""
        self._suspension = suspension
        self.set(seconds, TIME_LIMIT, now)

    def set(self, seconds: float | None, reason: str, now: float) -> None:
        """End the step in so many seconds; None: never."""
        self.reason = reason
        self._at = None if seconds is None else self._clock(now) + seconds

    def remove(self) -> None:
        """Remove the time, because the step is being ended."""
        self._at = None

    def delay(self, seconds: float) -> None:
        """Add the seconds of a suspension, if they do not count."""
        if self._at is not None and self.reason == TIME_LIMIT:
            self._at += seconds

    @property
    def due(self) -> float | None:
        """Time at which the step is ended; None: never, or time stands still."""
        is_still = self._suspension.since is not None and self.reason == TIME_LIMIT
        return None if is_still else self._at

    def seconds_left(self, now: float) -> float | None:
        """Return the time until the end; None: there is none."""
        return None if self._at is None else self._at - self._clock(now)

    def _clock(self, now: float) -> float:
        """Return the time from which the time until the end counts."""
        since = self._suspension.since
        return now if since is None or self.reason != TIME_LIMIT else since
