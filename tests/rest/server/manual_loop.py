"""An event loop whose clock moves when told."""

from __future__ import annotations

import asyncio


class StoppedLoop(asyncio.SelectorEventLoop):
    """An event loop at a time of our own."""

    at = 0.0

    def time(self) -> float:
        return self.at

    async def pass_by(self, seconds: float) -> None:
        """Let everybody begin, then so much time pass, and everybody do what is due."""
        for passing in (0.0, seconds):
            self.at += passing
            for _ in range(5):
                await asyncio.sleep(0)
