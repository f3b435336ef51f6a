"""The counter: where wishes queue before the bank. Who hands some in is told what came of them.

`counting.windows` judges them in threads of this process, `counting.apart` in a process of their own.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.core.errors import Busy, Unreachable
from fairbank.service.ledger import BATCH_MAX, Ledger

_log = logging.getLogger(__name__)

BatchResult = list[Outcome] | Exception
BatchCallback = Callable[[BatchResult], None]
"""Who handed a batch in is told what came of it: an answer for each wish, or why there is none. In a thread of the counter, so be brief."""


def _ignore(outcomes: Sequence[Outcome]) -> None:
    """Watches nothing."""


class WriteQueue(ABC):
    """A bounded queue before a bank. `room` is how many wishes may wait; whoever sets `watch` is told what came of each batch, perhaps in
    several threads at once. `failure` is why nothing is judged here any more, where that is so: the server has to end then."""

    def __init__(self, bank: Ledger, capacity: int) -> None:
        self.bank = bank
        self.capacity = capacity
        self.observer: Callable[[Sequence[Outcome]], None] = _ignore
        self.failure: Unreachable | None = None

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How many wishes wait to be judged; with a process of its own, those that are being judged among them."""

    @abstractmethod
    def submit(self, batch: Sequence[Asked], notify: BatchCallback) -> None:
        """Queue a batch, of at most BATCH_MAX wishes: one transaction; its answers come together. Raises Busy when there is no room.

        What was handed in is not taken back: nobody could say whether it was carried out. But what is told Busy later, because it
        waited too long or others were in the way all the time, is not carried out.
        """

    @abstractmethod
    def close(self) -> None:
        """Answer what waits, then stop."""

    @contextmanager
    def in_loop(self, loop: AbstractEventLoop) -> Iterator[None]:
        """While the block lasts, in the thread of a running loop, the counter may use that loop in place of a thread of its own."""
        del loop
        yield

    def apply(self, batch: Sequence[Asked]) -> list[Outcome]:
        """Queue a batch and wait for its answers. Not in an event loop. Raises Busy, Unreachable."""
        answers: Future[list[Outcome]] = Future()

        def notify(came: BatchResult) -> None:
            if isinstance(came, Exception):
                answers.set_exception(came)
            else:
                answers.set_result(came)

        self.submit(batch, notify)
        return answers.result()

    def _check_capacity(self, batch: Sequence[Asked], waiting: int, *, closed: bool) -> None:
        """Raises Busy where a batch finds no room beside those that wait."""
        if closed:
            raise Busy("the server is stopping")
        if waiting and waiting + len(batch) > self.capacity:
            raise Busy(f"{waiting} wishes are waiting already")

    def _observe(self, outcomes: Sequence[Outcome]) -> None:
        try:
            self.observer(outcomes)
        except Exception:  # noqa: BLE001  who only watches must not end a thread that writes
            _log.exception("the counter's watcher failed")


def check_batch_size(batch: Sequence[Asked]) -> None:
    """Raises ValueError: what is longer would be carried out in pieces, and its asker told Busy after some of them."""
    if len(batch) > BATCH_MAX:
        raise ValueError(f"{len(batch)} wishes do not fit into one transaction")


def call_safely(notify: BatchCallback, came: BatchResult) -> None:
    """Who is to be told may be gone, with their event loop; the counter must go on."""
    try:
        notify(came)
    except Exception:  # noqa: BLE001 (as above)
        _log.exception("an answer reached nobody")
