"""Writes to the ledger: apply a batch of requests and record the result in one transaction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.refusals import Refusal
from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome, apply
from fairbank.bank.transaction_data import RegistryNotLoaded, TransactionData
from fairbank.core.errors import Busy
from fairbank.store.contract import Contention, Store, Transaction

BATCH_MAX = 1_000
"""The most requests of one transaction."""

RETRY_SECONDS = 30.0
_PAUSE_STEP, _PAUSE_MAX = 0.002, 0.1
"""Seconds: the growth of the random pause after each attempt, and its upper limit."""


class Deadline(NamedTuple):
    """Monotonic time after which no attempt begins."""

    at: float
    monotonic: Callable[[], float]

    @property
    def is_over(self) -> bool:
        return self.monotonic() >= self.at


@dataclass(frozen=True)
class RetryPolicy:
    """Length of the time in which attempts may begin. Tests pass their own clock."""

    seconds: float = RETRY_SECONDS
    monotonic: Callable[[], float] = time.monotonic

    def new_deadline(self) -> Deadline:
        """Return the deadline for work that begins now."""
        return Deadline(self.monotonic() + self.seconds, self.monotonic)


class Ledger:
    """Ledger of one store. It retries a transaction while other writers hold the locks."""

    def __init__(
        self, store: Store, policy: Policy, retry_policy: RetryPolicy | None = None
    ) -> None:
        self.store = store
        self.policy = policy
        self.retry_policy = retry_policy or RetryPolicy()

    def apply(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline | None = None
    ) -> list[Outcome]:
        """Apply requests. When this returns, everything that was granted is durable.

        Args:
            batch: the requests. More than BATCH_MAX take several transactions.
            deadline: no attempt begins after it, but the first always does, and one in progress
                may last as long as the store waits for a lock. By default each transaction has
                its own.

        Returns:
            One outcome for each request, in order.

        Raises:
            Busy: other writers held the locks until the deadline.
            Unavailable: the database does not answer.
        """
        outcomes: list[Outcome] = []
        for begin in range(0, len(batch), BATCH_MAX):
            part = batch[begin : begin + BATCH_MAX]
            part_deadline = deadline or self.retry_policy.new_deadline()
            outcomes += self._run_transaction(part, part_deadline, write=True)[1]
        return outcomes

    def dry_run(self, request: SubmittedRequest) -> tuple[Outcome, TransactionData]:
        """Apply a request under the locks of `apply`, but write nothing.

        Returns the outcome and the rows as `apply` would write them. Numbers of new rows are not
        reserved: the next real request gets them. Raises as `apply` does.
        """
        work, (outcome,) = self._run_transaction(
            [request], self.retry_policy.new_deadline(), write=False
        )
        # A refusal that `apply` would record has no entry here, because nothing is written.
        if isinstance(outcome, Refusal) and any(
            entry.id == outcome.entry for entry in work.entries
        ):
            outcome = msgspec.structs.replace(outcome, entry=None)
        return outcome, work

    def _run_transaction(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline, *, write: bool
    ) -> tuple[TransactionData, list[Outcome]]:
        pause_max = 0.0
        while True:
            try:
                with self.store.transaction() as transaction:
                    work, outcomes = self._load_and_apply(transaction, batch, dry_run=not write)
                    if write:
                        transaction.write(work)
                return work, outcomes
            except Contention:
                if deadline.is_over:
                    raise Busy("other writers held the locks until the deadline") from None
                # Two servers met on the same rows. A pause of random length keeps them from
                # meeting again.
                pause_max = min(pause_max + _PAUSE_STEP, _PAUSE_MAX)
                time.sleep(random.uniform(0, pause_max))  # noqa: S311 (no secret)

    def _load_and_apply(
        self, transaction: Transaction, batch: Sequence[SubmittedRequest], *, dry_run: bool
    ) -> tuple[TransactionData, list[Outcome]]:
        """Load the rows that the batch needs and apply it to them.

        A refusal that concerns no allocation is recorded in the registry, and it shows only when
        the batch is applied. Then it is applied again with the registry locked: after the
        allocations, which is the lock order of every transaction.
        """
        try:
            return self._apply_all(transaction.load(lock_set_of(batch, dry_run=dry_run)), batch)
        except RegistryNotLoaded:
            needs = lock_set_of(batch, registry=True, dry_run=dry_run)
            return self._apply_all(transaction.load(needs), batch)

    def _apply_all(
        self, work: TransactionData, batch: Sequence[SubmittedRequest]
    ) -> tuple[TransactionData, list[Outcome]]:
        return work, [apply(work, request, self.policy) for request in batch]
