"""The counter: wishes that arrive together are judged together, so that they share one commit.

One thread takes whatever waits (at most BATCH_MAX wishes) and asks the bank. While it does, the next batch gathers: under
load the batches grow by themselves, without load nobody waits.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.service.bank import BATCH_MAX, Bank
from fairbank.values.trouble import Busy, Unreachable

_log = logging.getLogger(__name__)

Came = list[Outcome] | Exception
Told = Callable[[Came], None]
"""Who handed a batch in is told what came of it: an answer for each wish, or why there is none. In the counter's thread, so be brief."""


def _nobody(outcomes: Sequence[Outcome]) -> None:
    """Watches nothing."""


class Counter:
    """A bounded queue before a bank. `room` is how many wishes may wait; whoever sets `watch` is told what came of each batch."""

    def __init__(self, bank: Bank, *, room: int = 10_000) -> None:
        self.bank = bank
        self.room = room
        self.watch: Callable[[Sequence[Outcome]], None] = _nobody
        self._waiting: deque[tuple[Sequence[Asked], Told]] = deque()
        self._count = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="fairbank-counter", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many wishes wait to be judged."""
        return self._count

    def submit(self, batch: Sequence[Asked], told: Told) -> None:
        """Queue a batch; its answers come together. Raises Busy when there is no room.

        What was handed in is not taken back: nobody could say whether it was carried out.
        """
        with self._changed:
            if self._closed:
                raise Busy("the server is stopping")
            if self._count and self._count + len(batch) > self.room:
                raise Busy(f"{self._count} wishes are waiting already")
            self._waiting.append((batch, told))
            self._count += len(batch)
            self._changed.notify()

    def ask(self, batch: Sequence[Asked]) -> list[Outcome]:
        """Queue a batch and wait for its answers."""
        answers: Future[list[Outcome]] = Future()

        def told(came: Came) -> None:
            if isinstance(came, Exception):
                answers.set_exception(came)
            else:
                answers.set_result(came)

        self.submit(batch, told)
        return answers.result()

    def close(self) -> None:
        """Answer what waits, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _serve(self) -> None:
        while taken := self._take():
            try:
                outcomes = self.bank.ask([asked for batch, _ in taken for asked in batch])
            except Exception as error:  # noqa: BLE001 (handed to whoever asked; the counter itself must go on)
                self._apart(taken, error)
            else:
                self._answer(taken, outcomes)
                self._tell(outcomes)

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        try:
            self.watch(outcomes)
        except Exception:  # noqa: BLE001  who only watches must not end the one thread that writes
            _log.exception("the counter's watcher failed")

    def _take(self) -> list[tuple[Sequence[Asked], Told]]:
        """Whatever waits, up to BATCH_MAX wishes; empty when closed and done."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            taken: list[tuple[Sequence[Asked], Told]] = []
            size = 0
            while self._waiting and (not taken or size + len(self._waiting[0][0]) <= BATCH_MAX):
                taken.append(self._waiting.popleft())
                size += len(taken[-1][0])
            self._count -= size
        return taken

    @staticmethod
    def _answer(taken: list[tuple[Sequence[Asked], Told]], outcomes: list[Outcome]) -> None:
        begin = 0
        for batch, told in taken:
            _say(told, outcomes[begin : begin + len(batch)])
            begin += len(batch)

    def _apart(self, taken: list[tuple[Sequence[Asked], Told]], error: Exception) -> None:
        """A batch failed: if that may lie at one wish, ask for each submission by itself, so that the others are served."""
        if isinstance(error, Unreachable) or len(taken) == 1:
            for _, told in taken:
                _say(told, error)
            return
        for batch, told in taken:
            try:
                came: Came = self.bank.ask(batch)
            except Exception as own:  # noqa: BLE001 (as above)
                came = own
            _say(told, came)


def _say(told: Told, came: Came) -> None:
    """Who is told may be gone, with their event loop; the counter must go on."""
    try:
        told(came)
    except Exception:  # noqa: BLE001 (as above)
        _log.exception("an answer reached nobody")
