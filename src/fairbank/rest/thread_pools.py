"""Threads for blocking work, separate for each kind, so that a slow kind delays only itself.

A munged that hangs blocks eight sign-ins, a slow query eight lists. Neither delays the report of a
job that is about to start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8  # for the routes, and for MUNGE
FEW_THREADS = 2  # for quick lookups; with THREADS, no more than a store has readers


class ThreadPool:
    """Threads for one kind of work, started on use."""

    def __init__(self, name: str, threads: int) -> None:
        self.executor = ThreadPoolExecutor(threads, f"fairbank-{name}")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(
            self.executor, lambda: work(*args, **kwargs)
        )


class ThreadPools:
    """Pools for MUNGE (munged and the nonces), tokens and reports. All other work uses the event
    loop's default pool."""

    def __init__(self, threads: int = THREADS) -> None:
        self.munge = ThreadPool("munge", THREADS)
        self.tokens = ThreadPool("tokens", FEW_THREADS)
        self.reports = ThreadPool("reports", FEW_THREADS)
        self._others = ThreadPool("rest", threads)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Provide the threads while the application runs; at its end, wait for their work."""
        with ExitStack() as stack:
            for pool in (self.munge, self.tokens, self.reports, self._others):
                stack.enter_context(pool.executor)
            asyncio.get_running_loop().set_default_executor(self._others.executor)
            yield
