"""Windows: wishes that arrive together are judged together, so that they share one commit.

A window (a thread) takes whatever waits (at most BATCH_MAX wishes) and asks the bank. While it does, the next batch gathers: under
load the batches grow by themselves, without load nobody waits. There are as many windows as the store carries on transactions side by
side; but as long as one is at work, another begins only with ENOUGH wishes. So while the database writes one large batch the next is
judged, and small ones are not cut up into smaller ones. What two batches both draw on is locked in the store by the first, as between
two servers.

While somebody else's lock keeps the bank from writing, nothing piles up. A submission that waited longer than the bank's
patience is not begun any more, and its asker is told Busy. A batch that was begun, with all that comes of it, has one deadline
of the same length. So whatever is carried out at all was begun at most two patiences after it was handed in, and ends when the
store's own wait for a lock ends: minutes later nothing happens that its asker has given up.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.core.errors import Busy, Unreachable
from fairbank.service.ledger import BATCH_MAX, Deadline, Ledger
from fairbank.service.write_queue.queue import (
    BatchCallback,
    BatchResult,
    WriteQueue,
    call_safely,
    check_batch_size,
)

NEXT_BATCH_MIN = 100


def _do_nothing() -> None:
    """There is nothing to do when a batch is done."""


class QueuedBatch(NamedTuple):
    """Wishes that came together, and who is told what came of them. After `begun_by` they are not begun any more."""

    batch: Sequence[Asked]
    notify: BatchCallback
    begun_by: Deadline


class WriterThreads(WriteQueue):
    """The counter in threads of this process. `after` is called in a window's thread whenever all of a batch were told. As many windows
    as the store has writers are at work at most; `spare` more only wait."""

    def __init__(
        self,
        bank: Ledger,
        *,
        capacity: int = 10_000,
        after_batch: Callable[[], None] = _do_nothing,
        spare_threads: int = 0,
    ) -> None:
        super().__init__(bank, capacity)
        self._after_batch = after_batch
        self._waiting: deque[QueuedBatch] = deque()
        self._count = 0
        self._busy = 0
        self._closed = False
        self._changed = threading.Condition()
        self._writers = bank.store.writers
        self._threads = [
            threading.Thread(target=self._run, name="fairbank-counter", daemon=True)
            for _ in range(self._writers + spare_threads)
        ]
        for each in self._threads:
            each.start()

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[Asked], notify: BatchCallback) -> None:
        """As of every counter."""
        check_batch_size(batch)
        with self._changed:
            self._check_capacity(batch, self._count, closed=self._closed)
            self._enqueue([QueuedBatch(batch, notify, self.bank.retry_policy.new_deadline())])

    def _enqueue(self, submissions: Sequence[QueuedBatch]) -> None:
        self._waiting.extend(submissions)
        self._count += sum(len(each.batch) for each in submissions)
        if self._can_begin:
            self._changed.notify()

    def close(self) -> None:
        """Answer what waits, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        while taken := self._take():
            in_time = [each for each in taken if not _expire(each)]
            if in_time:
                self._apply(in_time)
            self._after_batch()
            with self._changed:
                self._busy -= 1

    def _apply(self, taken: list[QueuedBatch]) -> None:
        deadline = self.bank.retry_policy.new_deadline()
        try:
            outcomes = self.bank.apply([asked for each in taken for asked in each.batch], deadline)
        except Exception as error:  # noqa: BLE001 (handed to whoever asked; the counter itself must go on)
            self._apply_separately(taken, error, deadline)
        else:
            self._answer(taken, outcomes)
            self._observe(outcomes)

    @property
    def _can_begin(self) -> bool:
        """Whether a window is to begin with what waits."""
        return self._busy < self._writers and (
            self._count >= NEXT_BATCH_MIN or (len(self._waiting) > 0 and not self._busy)
        )

    def _take(self) -> list[QueuedBatch]:
        """Whatever waits, up to BATCH_MAX wishes; empty when closed and done."""
        with self._changed:
            while not self._can_begin and not (self._closed and not self._waiting):
                self._wait()
            taken: list[QueuedBatch] = []
            size = 0
            while self._waiting and (not taken or size + len(self._waiting[0].batch) <= BATCH_MAX):
                taken.append(self._waiting.popleft())
                size += len(taken[-1].batch)
            self._count -= size
            self._busy += bool(taken)
            if (
                self._can_begin or self._closed
            ):  # for the other windows: one more may begin, or none will
                self._changed.notify_all()
        return taken

    def _wait(self) -> None:
        """Under the lock, until something may have changed."""
        self._changed.wait()

    @staticmethod
    def _answer(taken: list[QueuedBatch], outcomes: list[Outcome]) -> None:
        begin = 0
        for each in taken:
            end = begin + len(each.batch)
            call_safely(each.notify, outcomes[begin:end])
            begin = end

    def _apply_separately(
        self, taken: list[QueuedBatch], error: Exception, deadline: Deadline
    ) -> None:
        """A batch failed: if that may lie at one wish, ask for each submission by itself, so that the others are served. It does not
        lie at a wish when nobody answers; and when the time is over, or nobody answers any more, whatever is left is not begun.
        """
        for each in taken:
            if len(taken) > 1 and not isinstance(error, Unreachable):
                came = (
                    Busy("other writers were in the way all the time")
                    if deadline.is_over
                    else self._apply_one(each, deadline)
                )
                error = _not_begun() if isinstance(came, Unreachable) else error
            else:
                came = error
            call_safely(each.notify, came)
            if not isinstance(came, Exception):
                self._observe(came)

    def _apply_one(self, submission: QueuedBatch, deadline: Deadline) -> BatchResult:
        try:
            return self.bank.apply(submission.batch, deadline)
        except Exception as own:  # noqa: BLE001 (as above)
            return own


def _not_begun() -> Unreachable:
    return Unreachable(
        "the database does not answer any more, and this was not carried out", remedy="try again"
    )


def _expire(submission: QueuedBatch) -> bool:
    """Whether it waited too long to be begun; then its asker is told."""
    if not submission.begun_by.is_over:
        return False
    call_safely(submission.notify, Busy("the bank could not write for a while"))
    return True
