"""A thread that looks again and again whether held jobs can be paid now (slurm.releasing)."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fairbank.rest.client import Client, parse_address
from fairbank.slurm.agent.settings import AgentSettings
from fairbank.slurm.commands import SlurmCommands
from fairbank.slurm.held_jobs import Releaser


class ReleaseRounds:
    """One round every so often, as long as the agent lives."""

    def __init__(self, settings: AgentSettings) -> None:
        """Raises the Trouble that keeps it from signing in."""
        self._every = settings.release.every
        signer = settings.release.signer(settings.bank)
        client = Client(
            parse_address(settings.bank.server, field="bank.server"),
            signer=signer,
            timeout_seconds=settings.bank.timeout,
        )
        self._releaser = Releaser(client, SlurmCommands(), settings.release.again)
        self._thread = ThreadPoolExecutor(1, "release")

    async def run(self) -> None:
        """Until it is closed."""
        while True:
            await asyncio.sleep(self._every)
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._releaser.run_round, time.monotonic()
            )

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def status(self) -> dict[str, Any]:
        """What a person may want to know, as JSON."""
        return self._releaser.status()
