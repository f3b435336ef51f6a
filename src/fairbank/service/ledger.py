"""The bank's one way to write: a batch of wishes, judged and recorded in one transaction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from fairbank.bank.ledger import Outcome, judge
from fairbank.bank.needs import needs_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusal import Refusal
from fairbank.bank.wish import Asked
from fairbank.bank.working_set import OfficeNeeded, WorkingSet
from fairbank.core.errors import Busy
from fairbank.store.contract import Contention, Store, Transaction

BATCH_MAX = 1_000
_PAUSE_STEP, _PAUSE_MAX = 0.002, 0.1
"""Seconds that a pause after a try may grow by, and last at most."""


class Ledger:
    """Judges batches against one store, and tries again while other writers are in the way: for as long as `patience` says."""

    def __init__(
        self, store: Store, policy: Policy, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.store = store
        self.policy = policy
        self.retry_policy = retry_policy or RetryPolicy()

    def apply(self, batch: Sequence[Asked], deadline: Deadline | None = None) -> list[Outcome]:
        """An answer for each wish, in order. When this returns, all that was granted is durable.

        More than BATCH_MAX wishes take several transactions. Raises Busy when other writers stay in the way, Unreachable.
        After the deadline (by default each transaction has its own) no try is begun, but the first and the one under way
        may last: as long as the store waits for a lock.
        """
        answers: list[Outcome] = []
        for begin in range(0, len(batch), BATCH_MAX):
            answers += self._apply_transaction(
                batch[begin : begin + BATCH_MAX], deadline or self.retry_policy.new_deadline()
            )
        return answers

    def dry_run(self, asked: Asked) -> tuple[Outcome, WorkingSet]:
        """What `ask` would answer to one wish, and the rows that it was judged in, the same under the same locks, with all that `ask`
        would write; nothing is written.

        Entries and whatever else is new have numbers that are not taken: the next to write gets them. Raises Busy, Unreachable.
        """
        work, (answer,) = self._run_transaction(
            [asked], self.retry_policy.new_deadline(), write=False
        )
        if isinstance(answer, Refusal) and any(each.id == answer.entry for each in work.entries):
            answer = msgspec.structs.replace(answer, entry=None)  # it would be kept, and is not
        return answer, work

    def _apply_transaction(self, batch: Sequence[Asked], deadline: Deadline) -> list[Outcome]:
        return self._run_transaction(batch, deadline, write=True)[1]

    def _run_transaction(
        self, batch: Sequence[Asked], deadline: Deadline, *, write: bool
    ) -> tuple[WorkingSet, list[Outcome]]:
        longest = 0.0
        while True:
            try:
                with self.store.transaction() as transaction:
                    work, answers = self._load_and_apply(transaction, batch, foretold=not write)
                    if write:
                        transaction.write(work)
                return work, answers
            except Contention:
                if deadline.is_over:
                    raise Busy("other writers were in the way all the time") from None
                # Two servers met on the same rows; a moment of random length keeps them from meeting again.
                longest = min(longest + _PAUSE_STEP, _PAUSE_MAX)
                time.sleep(random.uniform(0, longest))  # noqa: S311 (no secret)

    def _load_and_apply(
        self, transaction: Transaction, batch: Sequence[Asked], *, foretold: bool
    ) -> tuple[WorkingSet, list[Outcome]]:
        """The batch judged in the rows that it needs. That it also needs the office's book may show only in judging: a refusal that
        meets no allocation is kept there. Then it is judged again, with the office locked after the allocations as always.
        """
        try:
            return self._apply_all(transaction.load(needs_of(batch, foretold=foretold)), batch)
        except OfficeNeeded:
            return self._apply_all(
                transaction.load(needs_of(batch, office=True, foretold=foretold)), batch
            )

    def _apply_all(
        self, work: WorkingSet, batch: Sequence[Asked]
    ) -> tuple[WorkingSet, list[Outcome]]:
        return work, [judge(work, each, self.policy) for each in batch]


RETRY_SECONDS = 30.0


class Deadline(NamedTuple):
    """A moment after which nothing more is begun."""

    at: float
    monotonic: Callable[[], float]

    @property
    def is_over(self) -> bool:
        return self.monotonic() >= self.at


@dataclass(frozen=True)
class RetryPolicy:
    """So many seconds, by `ticks`."""

    seconds: float = RETRY_SECONDS
    monotonic: Callable[[], float] = time.monotonic

    def new_deadline(self) -> Deadline:
        """The deadline of what begins now."""
        return Deadline(self.monotonic() + self.seconds, self.monotonic)
