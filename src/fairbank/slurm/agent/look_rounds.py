"""A thread that looks at the bank again and again while there is nothing to tell it (slurm.agent.looking)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor

import msgspec

from fairbank.core.errors import FairbankError
from fairbank.rest.bodies.answers import Myself
from fairbank.rest.client import Client
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.looking import Looks, barred, wants_a_look
from fairbank.slurm.report_results import cannot_ask, no_bank

_log = logging.getLogger(__name__)

_WATCH_SECONDS = 0.25


class LookRounds:
    """Looks as long as the agent lives. `greeted` tells the clusters of the plug-ins that are connected."""

    def __init__(self, core: Core, client: Client, greeted: Callable[[], Set[str]]) -> None:
        self.looks = Looks()
        self._core, self._client, self._greeted = core, client, greeted
        self._clusters: Set[str] = frozenset()
        self._thread = ThreadPoolExecutor(1, "look")

    async def run(self) -> None:
        """Until it is closed."""
        while True:
            self._clusters = (
                self._greeted() or self._clusters
            )  # while slurmctld is away, those of before
            if wants_a_look(self._core, self.looks, self._clusters, time.monotonic()):
                await self._look(self._clusters)
            await asyncio.sleep(_WATCH_SECONDS)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self, clusters: Set[str]) -> None:
        trouble = await asyncio.get_running_loop().run_in_executor(
            self._thread, look, self._client, clusters
        )
        news = self.looks.found(trouble, clusters, self._core.bank, time.monotonic())
        if trouble is not None:
            self._core.tally["looks", trouble.title] += 1
        if news and trouble is not None:
            _log.warning("%s; %s", trouble.message, trouble.remedy or "looking again")
        elif news:
            _log.info("the bank is there, and takes reports of %s", ", ".join(sorted(clusters)))


def look(client: Client, clusters: Set[str]) -> FairbankError | None:
    """Why the bank would take no reports of one of these clusters now; None when it would. Nothing is changed there. It blocks."""
    try:
        me = read_me(client.get("/whoami").get("data"))
    except FairbankError as trouble:
        return trouble
    except OSError as error:
        return cannot_ask(error)
    return next(filter(None, (barred(me, each) for each in sorted(clusters))), None)


def read_me(answer: object) -> Myself:
    """Whom the bank takes us for. Raises Unavailable for an answer that is none of a bank."""
    try:
        return msgspec.convert(answer, Myself)
    except msgspec.ValidationError as bad:
        raise no_bank(bad) from bad
