"""Ends whatever takes too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast


class Overdue:
    """The same patience with everything that is worked on, by one timer for all of it.

    asyncio's own timeout arms and disarms a timer for each: of a request that takes a tenth of a millisecond, a tenth.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines: dict[
            asyncio.Task[Any], float
        ] = {}  # the first to come stands first: all have the same patience
        self._timer: asyncio.TimerHandle | None = None

    async def bound(self, work: Awaitable[None]) -> None:
        """Wait for `work`. Raises TimeoutError when it takes too long; then it was cancelled."""
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())
        deadline = self._deadlines[task] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._end, loop)
        try:
            await work
        except asyncio.CancelledError:
            if task in self._deadlines or task.uncancel() > 0:  # somebody else ends it
                raise
            raise TimeoutError from None
        finally:
            self._deadlines.pop(task, None)
            if not self._deadlines:
                self._disarm()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel those whose time is over, and wait for the next."""
        while self._deadlines:
            task, deadline = next(iter(self._deadlines.items()))
            if loop.time() < deadline:
                self._timer = loop.call_at(deadline, self._end, loop)
                return
            del self._deadlines[task]
            task.cancel()
        self._disarm()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
