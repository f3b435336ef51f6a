"""Between the event loop and the counter: wishes go in without blocking, answers of one batch come back with one wake-up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.service.counter import Counter


class _Answered(NamedTuple):
    waiting: asyncio.Future[list[Outcome]]
    done: Future[list[Outcome]]


class Desk:
    """The counter as a coroutine.

    `asyncio.wrap_future` would wake the loop once for each future; under load a batch answers hundreds of them at a time.
    """

    def __init__(self, counter: Counter, loop: asyncio.AbstractEventLoop) -> None:
        self._counter, self._loop = counter, loop
        self._answered: deque[_Answered] = deque()
        self._woken = False

    async def ask(self, batch: Sequence[Asked]) -> list[Outcome]:
        """An answer for each wish, in order. Raises Busy, Unreachable.

        Who stops waiting (a client that left) does not stop the wishes: what was handed in is carried out.
        """
        waiting: asyncio.Future[list[Outcome]] = self._loop.create_future()
        self._counter.submit(batch).add_done_callback(lambda done: self._put(_Answered(waiting, done)))
        return await waiting

    def _put(self, answered: _Answered) -> None:
        """In the counter's thread."""
        self._answered.append(answered)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        """In the loop. The flag falls first: whatever is put after that wakes us again."""
        self._woken = False
        while self._answered:
            waiting, done = self._answered.popleft()
            if waiting.done():
                continue
            if (error := done.exception()) is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(done.result())
