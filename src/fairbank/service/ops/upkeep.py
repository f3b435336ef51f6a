"""Upkeep: expired holds and allocations, sums of usage, old fair-share records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import msgspec

from fairbank.bank.requests import Expire, Lapse, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.core.errors import Corrupt, FairbankError
from fairbank.core.time import DAY, Clock, Instant
from fairbank.service.ledger import BATCH_MAX
from fairbank.service.write_queue.queue import WriteQueue
from fairbank.store.contract import Store

_log = logging.getLogger(__name__)


class SweepResult(msgspec.Struct, frozen=True):
    """Numbers of holds that expired and of allocations that ended."""

    holds_expired: int
    allocations_ended: int


class Upkeep:
    """Upkeep of a bank, on demand or in a thread."""

    def __init__(
        self,
        store: Store,
        queue: WriteQueue,
        clock: Clock,
        actor: int,
        shares_days: int | None = None,
    ) -> None:
        """`shares_days`: days for which fair-share records are kept; None for ever."""
        self._store, self._queue, self._clock, self._actor = store, queue, clock, actor
        self._shares_days, self._deleted_on = shares_days, -1
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def sweep(self) -> SweepResult:
        """Expire overdue holds, and end active allocations past their period; their open holds
        stay.

        A row that cannot be read is logged and skipped, so that it delays nothing else.
        """
        now = self._clock.now()
        lapsed = ended = 0
        unread: set[Lapse | Expire] = set()
        while True:
            with self._store.reading() as reader:
                # The longest overdue come first, so unreadable ones come again each time: ask for
                # as many more.
                runs = reader.overdue_runs(now, BATCH_MAX + len(unread))
                numbers = reader.expired_allocations(now, BATCH_MAX + len(unread))
            known = len(unread)
            lapses = self._apply_unread([Lapse(run=run) for run in runs], now, unread)
            ends = self._apply_unread(
                [Expire(allocation=number) for number in numbers], now, unread
            )
            lapsed, ended = lapsed + lapses, ended + ends
            # Nothing was left to do, or another server swept the same rows.
            if not lapses + ends and len(unread) == known:
                return SweepResult(lapsed, ended)

    def add_up_usage(self) -> None:
        """Bring the sums of usage up to date, a part at a time, so that no request waits long."""
        while self._store.fold_usage():
            pass

    def delete_old_shares(self) -> int:
        """Delete fair-share records older than the limit, once a day. Returns their number."""
        today = self._clock.now() // DAY
        if self._shares_days is None or today == self._deleted_on:
            return 0
        gone = self._store.delete_share_records(today + 1 - self._shares_days)
        self._deleted_on = today
        return gone

    def _apply_unread(
        self, requests: Sequence[Lapse | Expire], now: Instant, unread: set[Lapse | Expire]
    ) -> int:
        """Apply the requests that are not known to be unreadable, and return the number granted."""
        return self._apply(
            [request for request in requests if request not in unread][:BATCH_MAX], now, unread
        )

    def _apply(
        self, requests: Sequence[Lapse | Expire], now: Instant, unread: set[Lapse | Expire]
    ) -> int:
        """Apply requests and return the number granted. Halves the batch to find an unreadable
        row.
        """
        if not requests:
            return 0
        try:
            return sum(
                isinstance(outcome, Done)
                for outcome in self._queue.apply(
                    [SubmittedRequest(request, now, self._actor) for request in requests]
                )
            )
        except Corrupt as corrupt:
            if len(requests) == 1:
                _log.error(
                    "upkeep: %s is left as it is: %s; %s",
                    _describe(requests[0]),
                    corrupt.message,
                    corrupt.remedy,
                )
                unread.add(requests[0])
                return 0
            half = len(requests) // 2
            return self._apply(requests[:half], now, unread) + self._apply(
                requests[half:], now, unread
            )

    def start(self, every_seconds: float = 60) -> None:
        """Sweep regularly in a thread until `stop`."""
        self._thread = threading.Thread(
            target=self._run, args=(every_seconds,), name="fairbank-upkeep", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _run(self, every_seconds: float) -> None:
        while not self._stop.wait(every_seconds):
            try:
                swept = self.sweep()
                if swept.holds_expired or swept.allocations_ended:
                    _log.info(
                        "upkeep: %d holds lapsed, %d allocations ended",
                        swept.holds_expired,
                        swept.allocations_ended,
                    )
                self.add_up_usage()
                if gone := self.delete_old_shares():
                    _log.info("upkeep: %d old fair-share records deleted", gone)
            except FairbankError as error:
                _log.warning("upkeep: %s; next try in %g s", error.message, every_seconds)
            except Exception:  # noqa: BLE001  the sweep must go on, or no hold would ever expire
                _log.exception("upkeep failed; next try in %g s", every_seconds)


def _describe(request: Lapse | Expire) -> str:
    return (
        f"the hold of run {request.run}"
        if isinstance(request, Lapse)
        else f"the end of allocation {request.allocation}"
    )
