"""Between the event loop and the counter: wishes go in without blocking, answers of one batch come back with one wake-up."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.service.write_queue.queue import BatchCallback, BatchResult, WriteQueue

Waiting = asyncio.Future[list[Outcome]]

_log = logging.getLogger(__name__)


class Teller:
    """The counter as a coroutine; made in the thread of its loop.

    Waking the loop for each answer would be dear: under load a batch has hundreds.
    """

    def __init__(self, counter: WriteQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._counter, self._loop, self._thread = counter, loop, threading.get_ident()
        self._answered: deque[tuple[BatchCallback, BatchResult]] = deque()
        self._woken = False

    async def ask(self, batch: Sequence[Asked]) -> list[Outcome]:
        """An answer for each wish, in order. Raises Busy, Unreachable.

        Who stops waiting (a client that left) does not stop the wishes: what was handed in is carried out.
        """
        waiting: Waiting = self._loop.create_future()
        self.submit(batch, partial(settle, waiting))
        return await waiting

    def submit(self, batch: Sequence[Asked], notify: BatchCallback) -> None:
        """The same for who is notified in the loop, and does not wait. Raises Busy."""
        self._counter.submit(batch, partial(self._put, notify))

    def _put(self, notify: BatchCallback, came: BatchResult) -> None:
        """In the counter's thread, which is the loop's own where the counter is a process."""
        if threading.get_ident() == self._thread:
            notify(came)
            return
        self._answered.append((notify, came))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        """In the loop. The flag falls first: whatever is put after that wakes us again."""
        self._woken = False
        while self._answered:
            notify, came = self._answered.popleft()
            try:
                notify(came)
            except Exception:  # noqa: BLE001 (the others are to have their answers)
                _log.exception("an answer reached nobody")


def settle(waiting: Waiting, came: BatchResult) -> None:
    """What came is what is waited for, if anybody still does."""
    if waiting.done():
        return
    if isinstance(came, Exception):
        waiting.set_exception(came)
    else:
        waiting.set_result(came)
