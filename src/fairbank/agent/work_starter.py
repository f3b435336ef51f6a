"""Interface by which parts of the agent start work in its event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Protocol


class WorkStarter(Protocol):
    """Starter of tasks in the agent's event loop."""

    def start_task(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine; a failure of it ends the agent."""
        ...

    def pump_soon(self) -> None:
        """Start all I/O that is due, at the end of this turn of the event loop."""
        ...
