"""Event loop whose clock the test sets."""

from __future__ import annotations

import asyncio


class ManualLoop(asyncio.SelectorEventLoop):
    """Event loop whose clock changes only in `advance`."""

    at = 0.0

    def time(self) -> float:
        return self.at

    async def advance(self, seconds: float) -> None:
        """Run all that is ready, advance the clock, and run all that is due."""
        for passing in (0.0, seconds):
            self.at += passing
            for _ in range(5):
                await asyncio.sleep(0)
