"""Queue of requests in front of the ledger.

`write_queue.writers` applies the requests in threads of this process, `write_queue.process` in a
process of its own.

When the server stops, new requests get Busy, and those that wait are applied and answered. When
the server or its process is killed, open transactions are rolled back and were not
answered: clients repeat them with the same key. When the queue's process is killed, open batches
get Unavailable ("not known whether"), and the server ends too (`failure`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Busy, Unavailable
from fairbank.service.ledger import BATCH_MAX, Ledger

_log = logging.getLogger(__name__)

BatchResult = list[Outcome] | Exception
"""One outcome for each request of a batch, in order, or the error that prevented them."""

BatchCallback = Callable[[BatchResult], None]
"""Called once with the result of a batch. It runs in a thread of the queue, so it must be short."""


def _ignore(outcomes: Sequence[Outcome]) -> None:
    """Do nothing with the outcomes: the default observer."""


class WriteQueue(ABC):
    """Bounded queue of requests in front of a ledger.

    Attributes:
        bank: the ledger that applies the requests.
        waiting_max: the most requests that may wait.
        observer: called with the outcomes of each batch, perhaps in several threads at once.
        failure: set when the queue cannot work any more. The server has to end then.
    """

    def __init__(self, bank: Ledger, waiting_max: int) -> None:
        self.bank = bank
        self.waiting_max = waiting_max
        self.observer: Callable[[Sequence[Outcome]], None] = _ignore
        self.failure: Unavailable | None = None

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Number of waiting requests. A queue in a process counts those in progress, too."""

    @abstractmethod
    def submit(self, batch: Sequence[SubmittedRequest], notify: BatchCallback) -> None:
        """Queue a batch of at most BATCH_MAX requests and return at once.

        One transaction applies the whole batch, and `notify` gets all its outcomes together. A
        submitted batch cannot be cancelled: it would be unknown if it was applied. A batch whose
        result is Busy (it waited too long, or others held the locks) was not applied.

        Raises:
            Busy: the queue is full or closed.
            ValueError: the batch is too long.
        """

    @abstractmethod
    def close(self) -> None:
        """Apply and answer what waits, then stop."""

    @contextmanager
    def in_loop(self, loop: AbstractEventLoop) -> Iterator[None]:
        """Let the queue use the running event loop of this thread while the block lasts."""
        del loop
        yield

    def apply(self, batch: Sequence[SubmittedRequest]) -> list[Outcome]:
        """Queue a batch and wait for its outcomes. Not for use in an event loop.

        Raises:
            Busy, Unavailable: the batch was not applied, or it is unknown if it was.
        """
        outcomes: Future[list[Outcome]] = Future()

        def notify(result: BatchResult) -> None:
            if isinstance(result, Exception):
                outcomes.set_exception(result)
            else:
                outcomes.set_result(result)

        self.submit(batch, notify)
        return outcomes.result()

    def _check_waiting_max(
        self, batch: Sequence[SubmittedRequest], waiting: int, *, closed: bool
    ) -> None:
        """Raise Busy if the queue is closed, or too full for the batch."""
        if closed:
            raise Busy("the server is stopping")
        # An empty queue takes any batch, or one longer than the maximum could never be applied.
        if waiting and waiting + len(batch) > self.waiting_max:
            raise Busy(f"{waiting} requests are waiting already")

    def _observe(self, outcomes: Sequence[Outcome]) -> None:
        try:
            self.observer(outcomes)
        except Exception:  # noqa: BLE001  an observer must not end a thread that writes
            _log.exception("the observer of the write queue failed")


def check_batch_size(batch: Sequence[SubmittedRequest]) -> None:
    """Raise ValueError for a batch that needs more than one transaction.

    Busy could follow after the first of them, and would then no longer mean "not applied".
    """
    if len(batch) > BATCH_MAX:
        raise ValueError(f"{len(batch)} requests do not fit into one transaction")


def call_safely(notify: BatchCallback, result: BatchResult) -> None:
    """Call a callback and log its errors: its event loop may be closed, but the queue goes on."""
    try:
        notify(result)
    except Exception:  # noqa: BLE001 (as above)
        _log.exception("the result of a batch could not be delivered")
