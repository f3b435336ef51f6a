"""Where work that blocks is done: each kind in threads of its own, so that what is slow keeps only its like waiting.

A munged that hangs holds eight sign-ins, a slow query eight lists; neither holds the report of a job that is about to start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8  # of the routes, and of MUNGE
FEW = 2  # of what is quick as long as the books are; with THREADS no more than a store has readers


class Pool:
    """Threads for one kind of work, begun when they are needed."""

    def __init__(self, name: str, threads: int) -> None:
        self.executor = ThreadPoolExecutor(threads, f"fairbank-{name}")

    async def run(self, work: Callable[P, T], *about: P.args, **more: P.kwargs) -> T:
        """What `work` returns or raises."""
        return await asyncio.get_running_loop().run_in_executor(
            self.executor, lambda: work(*about, **more)
        )


class Workers:
    """All that may block: MUNGE (munged, and the nonces), tokens, reports of runs; and the loop's own threads for everything else."""

    def __init__(self, threads: int = THREADS) -> None:
        self.munge, self.tokens, self.reports = (
            Pool("munge", THREADS),
            Pool("tokens", FEW),
            Pool("reports", FEW),
        )
        self._others = Pool("rest", threads)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While the application runs; waits for what is being done at its end."""
        with ExitStack() as ended:
            for each in (self.munge, self.tokens, self.reports, self._others):
                ended.enter_context(each.executor)
            asyncio.get_running_loop().set_default_executor(self._others.executor)
            yield
