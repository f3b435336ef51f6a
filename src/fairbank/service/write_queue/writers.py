"""Windows: requests that arrive together are judged together, so that they share one commit.

A window (a thread) takes whatever waits (at most BATCH_MAX requests) and asks the bank. While it does, the next batch gathers: under
load the batches grow by themselves, without load nobody waits. There are as many windows as the store carries on transactions side by
side; but as long as one is at work, another begins only with ENOUGH requests. So while the database writes one large batch the next is
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

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Busy, Unavailable
from fairbank.service.ledger import BATCH_MAX, Ledger
from fairbank.service.retry import Deadline
from fairbank.service.write_queue.queue import Came, Counter, Notify, demand_one_transaction, say

ENOUGH = 100


def _nothing() -> None:
    """There is nothing to do when a batch is done."""


class Submission(NamedTuple):
    """Requests that came together, and who is told what came of them. After `begun_by` they are not begun any more."""

    batch: Sequence[SubmittedRequest]
    notify: Notify
    begun_by: Deadline


class Windows(Counter):
    """The counter in threads of this process. `after` is called in a window's thread whenever all of a batch were told. As many windows
    as the store has writers are at work at most; `spare` more only wait."""

    def __init__(
        self,
        bank: Ledger,
        *,
        room: int = 10_000,
        after: Callable[[], None] = _nothing,
        spare: int = 0,
    ) -> None:
        super().__init__(bank, room)
        self._after = after
        self._waiting: deque[Submission] = deque()
        self._count = 0
        self._at_work = 0
        self._closed = False
        self._changed = threading.Condition()
        self._most = bank.store.writers
        self._windows = [
            threading.Thread(target=self._serve, name="fairbank-counter", daemon=True)
            for _ in range(self._most + spare)
        ]
        for each in self._windows:
            each.start()

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[SubmittedRequest], notify: Notify) -> None:
        """As of every counter."""
        demand_one_transaction(batch)
        with self._changed:
            self._admit(batch, self._count, closed=self._closed)
            self._queue([Submission(batch, notify, self.bank.patience.from_now())])

    def _queue(self, submissions: Sequence[Submission]) -> None:
        self._waiting.extend(submissions)
        self._count += sum(len(each.batch) for each in submissions)
        if self._due:
            self._changed.notify()

    def close(self) -> None:
        """Answer what waits, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for each in self._windows:
            each.join()

    def _serve(self) -> None:
        while taken := self._take():
            in_time = [each for each in taken if not _too_late(each)]
            if in_time:
                self._carry_out(in_time)
            self._after()
            with self._changed:
                self._at_work -= 1

    def _carry_out(self, taken: list[Submission]) -> None:
        deadline = self.bank.patience.from_now()
        try:
            outcomes = self.bank.ask([asked for each in taken for asked in each.batch], deadline)
        except Exception as error:  # noqa: BLE001 (handed to whoever asked; the counter itself must go on)
            self._apart(taken, error, deadline)
        else:
            self._answer(taken, outcomes)
            self._tell(outcomes)

    @property
    def _due(self) -> bool:
        """Whether a window is to begin with what waits."""
        return self._at_work < self._most and (
            self._count >= ENOUGH or (len(self._waiting) > 0 and not self._at_work)
        )

    def _take(self) -> list[Submission]:
        """Whatever waits, up to BATCH_MAX requests; empty when closed and done."""
        with self._changed:
            while not self._due and not (self._closed and not self._waiting):
                self._wait()
            taken: list[Submission] = []
            size = 0
            while self._waiting and (not taken or size + len(self._waiting[0].batch) <= BATCH_MAX):
                taken.append(self._waiting.popleft())
                size += len(taken[-1].batch)
            self._count -= size
            self._at_work += bool(taken)
            if self._due or self._closed:  # for the other windows: one more may begin, or none will
                self._changed.notify_all()
        return taken

    def _wait(self) -> None:
        """Under the lock, until something may have changed."""
        self._changed.wait()

    @staticmethod
    def _answer(taken: list[Submission], outcomes: list[Outcome]) -> None:
        begin = 0
        for each in taken:
            end = begin + len(each.batch)
            say(each.notify, outcomes[begin:end])
            begin = end

    def _apart(self, taken: list[Submission], error: Exception, deadline: Deadline) -> None:
        """A batch failed: if that may lie at one request, ask for each submission by itself, so that the others are served. It does not
        lie at a request when nobody answers; and when the time is over, or nobody answers any more, whatever is left is not begun.
        """
        for each in taken:
            if len(taken) > 1 and not isinstance(error, Unavailable):
                came = (
                    Busy("other writers were in the way all the time")
                    if deadline.over
                    else self._alone(each, deadline)
                )
                error = _not_begun() if isinstance(came, Unavailable) else error
            else:
                came = error
            say(each.notify, came)
            if not isinstance(came, Exception):
                self._tell(came)

    def _alone(self, submission: Submission, deadline: Deadline) -> Came:
        try:
            return self.bank.ask(submission.batch, deadline)
        except Exception as own:  # noqa: BLE001 (as above)
            return own


def _not_begun() -> Unavailable:
    return Unavailable(
        "the database does not answer any more, and this was not carried out", remedy="try again"
    )


def _too_late(submission: Submission) -> bool:
    """Whether it waited too long to be begun; then its asker is told."""
    if not submission.begun_by.over:
        return False
    say(submission.notify, Busy("the bank could not write for a while"))
    return True
