"""Write queue in threads. Batches that wait together share one transaction (group commit).

A writer thread takes all batches that wait, up to BATCH_MAX requests, and applies them. Meanwhile
the next batches gather, so transactions grow under load, and without load no request waits.

There are as many writer threads as the store can run transactions in parallel. While one of them
works, another begins only when NEXT_BATCH_MIN requests wait. So the database commits one large
transaction while the next is applied in memory, and small ones are not split further. If two
transactions need the same allocation, the store's locks order them, as between two servers.

Nothing piles up while another process holds the locks. A batch that waited longer than the retry
time is answered Busy and is not applied. All work on one transaction shares one deadline of the
same length. So a batch starts at most two retry times after it was submitted: nothing is applied
minutes after its client gave up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Busy, Unavailable
from fairbank.service.ledger import BATCH_MAX, Deadline, Ledger
from fairbank.service.write_queue.queue import (
    BatchCallback,
    BatchResult,
    WriteQueue,
    call_safely,
    check_batch_size,
)

NEXT_BATCH_MIN = 100
"""Waiting requests with which a second writer begins: docs/decisions/0018-two-writer-threads.md."""


def _do_nothing() -> None:
    """Do nothing after a transaction: the default."""


class QueuedBatch(NamedTuple):
    """Batch of one client, applied only if a writer takes it before `start_deadline`."""

    batch: Sequence[SubmittedRequest]
    notify: BatchCallback
    start_deadline: Deadline


class WriterThreads(WriteQueue):
    """Write queue in threads of this process.

    Invariant, under the lock of `_changed`: `_count` is the number of requests in `_waiting`, and
    `_busy` the number of threads between `_take` and the end of their transaction, at most
    `_writers`. If `_can_begin` holds, a thread has been notified. After `_closed` is set no batch
    is added, and every thread ends once `_waiting` is empty.
    """

    def __init__(
        self,
        bank: Ledger,
        *,
        waiting_max: int = 10_000,
        after_batch: Callable[[], None] = _do_nothing,
        spare_threads: int = 0,
    ) -> None:
        """Start the threads.

        Args:
            bank: the ledger that applies the requests.
            waiting_max: the most requests that may wait.
            after_batch: called in a writer thread after all batches of a transaction are answered.
            spare_threads: threads beyond the store's writers. They wait while these work.
        """
        super().__init__(bank, waiting_max)
        self._after_batch = after_batch
        self._waiting: deque[QueuedBatch] = deque()
        self._count = 0
        self._busy = 0
        self._closed = False
        self._changed = threading.Condition()
        self._writers = bank.store.writers
        self._threads = [
            threading.Thread(target=self._run, name="fairbank-writer", daemon=True)
            for _ in range(self._writers + spare_threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[SubmittedRequest], notify: BatchCallback) -> None:
        check_batch_size(batch)
        with self._changed:
            self._check_waiting_max(batch, self._count, closed=self._closed)
            self._enqueue([QueuedBatch(batch, notify, self.bank.retry_policy.new_deadline())])

    def _enqueue(self, batches: Sequence[QueuedBatch]) -> None:
        """Add batches. The caller holds the lock."""
        self._waiting.extend(batches)
        self._count += sum(len(queued.batch) for queued in batches)
        if self._can_begin:
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while batches := self._take():
            in_time = [queued for queued in batches if not _expire(queued)]
            if in_time:
                self._apply(in_time)
            self._after_batch()
            with self._changed:
                self._busy -= 1

    @property
    def _can_begin(self) -> bool:
        """True if a thread may begin with what waits. The caller holds the lock."""
        return self._busy < self._writers and (
            self._count >= NEXT_BATCH_MIN or (len(self._waiting) > 0 and not self._busy)
        )

    def _take(self) -> list[QueuedBatch]:
        """Wait for work and return at most BATCH_MAX requests; nothing once closed and empty."""
        with self._changed:
            while not self._can_begin and not (self._closed and not self._waiting):
                self._wait()
            batches: list[QueuedBatch] = []
            size = 0
            # Batches are not split: the outcomes of a batch come from one transaction.
            while self._waiting and (
                not batches or size + len(self._waiting[0].batch) <= BATCH_MAX
            ):
                batches.append(self._waiting.popleft())
                size += len(batches[-1].batch)
            self._count -= size
            self._busy += bool(batches)
            # Wake the others: one more may begin, or all have to see that the queue is closed.
            if self._can_begin or self._closed:
                self._changed.notify_all()
        return batches

    def _wait(self) -> None:
        """Wait until the state may have changed. The caller holds the lock."""
        self._changed.wait()

    def _apply(self, taken: list[QueuedBatch]) -> None:
        deadline = self.bank.retry_policy.new_deadline()
        requests = [request for queued in taken for request in queued.batch]
        try:
            outcomes = self.bank.apply(requests, deadline)
        except Exception as error:  # noqa: BLE001 (passed to the clients; the thread must go on)
            self._apply_separately(taken, error, deadline)
        else:
            self._answer(taken, outcomes)
            self._observe(outcomes)

    @staticmethod
    def _answer(taken: list[QueuedBatch], outcomes: list[Outcome]) -> None:
        begin = 0
        for queued in taken:
            end = begin + len(queued.batch)
            call_safely(queued.notify, outcomes[begin:end])
            begin = end

    def _apply_separately(
        self, taken: list[QueuedBatch], error: Exception, deadline: Deadline
    ) -> None:
        """Apply each batch of a failed transaction in its own, so that one bad batch fails alone.

        A lost database is no fault of a batch: after Unavailable nothing more is tried, and the
        rest gets the error. After the deadline the rest is Busy.
        """
        for queued in taken:
            result: BatchResult = error
            if len(taken) > 1 and not isinstance(error, Unavailable):
                if deadline.is_over:
                    result = Busy("other writers held the locks until the deadline")
                else:
                    result = self._apply_one(queued, deadline)
                if isinstance(result, Unavailable):
                    error = _not_applied()
            call_safely(queued.notify, result)
            if not isinstance(result, Exception):
                self._observe(result)

    def _apply_one(self, queued: QueuedBatch, deadline: Deadline) -> BatchResult:
        try:
            return self.bank.apply(queued.batch, deadline)
        except Exception as error:  # noqa: BLE001 (as in _apply)
            return error


def _not_applied() -> Unavailable:
    return Unavailable(
        "the database does not answer any more, and this was not carried out", remedy="try again"
    )


def _expire(queued: QueuedBatch) -> bool:
    """Answer Busy to a batch that waited too long, and return True for it."""
    if not queued.start_deadline.is_over:
        return False
    call_safely(queued.notify, Busy("the bank could not write for a while"))
    return True
