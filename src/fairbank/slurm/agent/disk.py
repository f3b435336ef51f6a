"""The shell around the outbox: one thread, one transaction at a time with all that has come meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.memory import Changes
from fairbank.slurm.agent.outbox import Outbox

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.025
RETRY_SECONDS = 1.0
CREDIT_SECONDS = 10.0
UNSAFE_MAX = 20_000
"""Reports that the disk has not taken yet; with more the plug-in is not listened to, which keeps its own letters."""

Do = Callable[[Coroutine[None, None, None]], None]


class Disk:
    """`do` carries out what is begun here, `done` is called when something came of it."""

    def __init__(self, outbox: Outbox, core: Core, do: Do, done: Callable[[], None]) -> None:
        self._outbox, self._core, self._do, self._done = outbox, core, do, done
        self._thread = ThreadPoolExecutor(1, "disk")
        self._writing = self._written_later = self._reading = False
        self._rests_until = self._credit_due = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether no more should come for now."""
        return len(self._core.memory.changes.letters) > UNSAFE_MAX

    def look(self, now: float) -> None:
        """Begin what is to be written and read."""
        self._write_some(now)
        if not self._reading and (seqs := self._core.queue.wanted()):
            self._reading = True
            self._do(self._read(seqs))

    def close(self) -> None:
        """What is not written yet is written, if it can be."""
        self._thread.shutdown(wait=True)
        self._credit_due = 0.0
        with contextlib.suppress(sqlite3.Error):
            self._outbox.write(self._changes(time.monotonic()))
        self._outbox.close()

    def _write_some(self, now: float) -> None:
        """At most so often, so that the disk is spared what the bank answers at once; but a refusal waits for nothing else."""
        changes = self._core.memory.changes
        if self._writing or not changes:
            return
        wait = self._rests_until - now
        if wait > 0 and not (changes.then and self._core.disk_trouble is None):
            if not self._written_later:
                self._written_later = True
                asyncio.get_running_loop().call_later(wait, self._write_now)
            return
        self._writing = True
        self._rests_until = now + PAUSE_SECONDS
        self._do(self._write(self._changes(now)))

    def _write_now(self) -> None:
        self._written_later = False
        self._write_some(time.monotonic())

    def _changes(self, now: float) -> Changes:
        if now >= self._credit_due:
            self._credit_due = now + CREDIT_SECONDS
            self._core.memory.changes.credit = self._core.credit.dump()
        return self._core.memory.take()

    async def _write(self, changes: Changes) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._outbox.write, changes
            )
        except sqlite3.Error as bad:
            self._rests_until = time.monotonic() + RETRY_SECONDS
            self._core.not_stored(changes, str(bad))
        else:
            self._core.stored(changes)
        self._writing = False
        self._done()

    async def _read(self, seqs: list[int]) -> None:
        try:
            letters = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._outbox.read, seqs
            )
        except sqlite3.Error as bad:
            _log.error("the outbox cannot be read: %s; look at its disk", bad)
            await asyncio.sleep(RETRY_SECONDS)
            self._core.queue.not_loaded(seqs)
        else:
            self._core.queue.loaded(letters)
        self._reading = False
        self._done()
