"""The write queue for coroutines."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.service.write_queue.queue import BatchCallback, BatchResult, WriteQueue

_log = logging.getLogger(__name__)


class AsyncWriteQueue:
    """The write queue as a coroutine. Create it in the thread of its event loop.

    Results of one batch wake the loop once: a wake-up for each of hundreds would cost too much.
    `_is_woken` is True from the wake-up until the loop begins to deliver.
    """

    def __init__(self, queue: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue, self._loop, self._thread = queue, loop, threading.get_ident()
        self._results: deque[tuple[BatchCallback, BatchResult]] = deque()
        self._is_woken = False

    async def apply(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]:
        """Apply requests to the ledger and return an outcome for each, in order.

        They are carried out even if the caller is cancelled (a client that disconnected).

        Raises:
            Busy: too many requests are queued.
            Unavailable: the database does not answer.
        """
        future: asyncio.Future[list[Outcome]] = self._loop.create_future()
        self._queue.submit(batch, partial(self._put, partial(_resolve, future)))
        return await future

    def _put(self, notify: BatchCallback, result: BatchResult) -> None:
        """Take a result in the queue's thread (the loop's own if the queue is a process)."""
        if threading.get_ident() == self._thread:
            notify(result)
            return
        self._results.append((notify, result))
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """Deliver results in the event loop."""
        self._is_woken = False  # before draining, or a concurrent put would be lost
        while self._results:
            notify, result = self._results.popleft()
            try:
                notify(result)
            except Exception:  # noqa: BLE001 (the others must get their results)
                _log.exception("a result could not be delivered")


def _resolve(future: asyncio.Future[list[Outcome]], result: BatchResult) -> None:
    if future.done():  # the caller was cancelled
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
