"""Writer of the outbox: when the changes are written and the wanted reports read, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

from fairbank.agent.outage_policy import KnownCredit
from fairbank.agent.outbox import Outbox
from fairbank.agent.reports.flow import ReportFlow
from fairbank.agent.run_memory import OutboxChanges
from fairbank.agent.work_starter import WorkStarter

_log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.025
RETRY_SECONDS = 1.0
CREDIT_SECONDS = 10.0
UNSAFE_MAX = 20_000  # reports not on disk; beyond, the agent does not read from the plug-in


class OutboxWriter:
    """Writer and reader of the outbox.

    Invariant: at most one transaction and one read are under way (`_writing`, `_reading`), and all
    changes that come meanwhile go into the next transaction.
    """

    def __init__(
        self, outbox: Outbox, flow: ReportFlow, credit: KnownCredit, starter: WorkStarter
    ) -> None:
        self._outbox, self._flow, self._credit = outbox, flow, credit
        self._starter = starter
        self._thread = ThreadPoolExecutor(1, "outbox")
        self._writing = self._write_scheduled = self._reading = False
        self._pause_until = self._credit_due = 0.0

    def start_work(self, now: float) -> None:
        """Start to write and read what is due."""
        self._start_write(now)
        if not self._reading and (seqs := self._flow.queue.take_wanted()):
            self._reading = True
            self._starter.start_task(self._read(seqs))

    def close(self) -> None:
        """Write the last changes, if that is possible."""
        self._thread.shutdown(wait=True)
        self._credit_due = 0.0
        with contextlib.suppress(sqlite3.Error):
            self._outbox.write(self._take_changes(time.monotonic()))
        self._outbox.close()

    def _start_write(self, now: float) -> None:
        changes = self._flow.memory.changes
        if self._writing or not changes:
            return
        # A pause between transactions, because reports that the bank answers at once need not be
        # written at all. But a refusal is sent only after it is written, so it does not wait.
        pause = self._pause_until - now
        has_refusals = bool(changes.replies) and self._flow.disk_error is None
        if pause > 0 and not has_refusals:
            if not self._write_scheduled:
                self._write_scheduled = True
                asyncio.get_running_loop().call_later(pause, self._write_now)
            return
        self._writing = True
        self._pause_until = now + PAUSE_SECONDS
        self._starter.start_task(self._write(self._take_changes(now)))

    def _write_now(self) -> None:
        self._write_scheduled = False
        self._start_write(time.monotonic())

    def _take_changes(self, now: float) -> OutboxChanges:
        if now >= self._credit_due:
            self._credit_due = now + CREDIT_SECONDS
            self._flow.memory.changes.credit = self._credit.dump()
        return self._flow.memory.take()

    async def _write(self, changes: OutboxChanges) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._outbox.write, changes)
        except sqlite3.Error as error:
            self._pause_until = time.monotonic() + RETRY_SECONDS
            self._flow.not_stored(changes, str(error))
        else:
            self._flow.stored(changes)
        self._writing = False
        self._starter.pump_soon()

    async def _read(self, seqs: list[int]) -> None:
        loop = asyncio.get_running_loop()
        try:
            reports = await loop.run_in_executor(self._thread, self._outbox.read, seqs)
        except sqlite3.Error as error:
            _log.error("the outbox cannot be read: %s; check its disk", error)
            await asyncio.sleep(RETRY_SECONDS)
            self._flow.queue.not_loaded(seqs)
        else:
            self._flow.queue.loaded(reports)
        self._reading = False
        self._starter.pump_soon()
