"""What the bank does unasked: holds lapse after their deadline, allocations end after their period, old fair share is forgotten."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import msgspec

from fairbank.bank.ledger import Done
from fairbank.bank.wish import Asked, Expire, Lapse
from fairbank.core.errors import Corrupt, Trouble
from fairbank.core.time import DAY, Clock, Instant
from fairbank.service.ledger import BATCH_MAX
from fairbank.service.write_queue.queue import WriteQueue
from fairbank.store.contract import Store

_log = logging.getLogger(__name__)


class SweepResult(msgspec.Struct, frozen=True):
    """How many holds lapsed and how many allocations were ended."""

    holds_expired: int
    allocations_ended: int


class Upkeep:
    """The sweep, at once or every so often."""

    def __init__(
        self,
        store: Store,
        counter: WriteQueue,
        clock: Clock,
        actor: int,
        shares_days: int | None = None,
    ) -> None:
        """`shares_days`: for how many days fair share is kept; None: for ever."""
        self._store, self._counter, self._clock, self._actor = store, counter, clock, actor
        self._shares_days, self._deleted_on = shares_days, -1
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def sweep(self) -> SweepResult:
        """Lapse every overdue hold and end every active allocation past its period; open holds there go on.

        What cannot be read is logged and left, so that it keeps nothing else waiting.
        """
        now = self._clock.now()
        lapsed = ended = 0
        unread: set[Lapse | Expire] = set()
        while True:
            with self._store.reading() as reader:
                runs = reader.overdue_runs(
                    now, BATCH_MAX + len(unread)
                )  # the longest overdue come first: those that cannot be read, again
                allocations = reader.expired_allocations(now, BATCH_MAX + len(unread))
            known = len(unread)
            lapses = self._apply_unread([Lapse(run=each) for each in runs], now, unread)
            ends = self._apply_unread(
                [Expire(allocation=each) for each in allocations], now, unread
            )
            lapsed, ended = lapsed + lapses, ended + ends
            if (
                not lapses + ends and len(unread) == known
            ):  # nothing was left to do, or another server swept the same
                return SweepResult(lapsed, ended)

    def delete_old_shares(self) -> int:
        """Forget the days of fair share that are older than is kept, once a day; returns how many figures that were."""
        today = self._clock.now() // DAY
        if self._shares_days is None or today == self._deleted_on:
            return 0
        gone = self._store.delete_share_records(today + 1 - self._shares_days)
        self._deleted_on = today
        return gone

    def _apply_unread(
        self, wishes: Sequence[Lapse | Expire], now: Instant, unread: set[Lapse | Expire]
    ) -> int:
        """How many of the wishes were granted, of those that are not known to be `unread`."""
        return self._apply([each for each in wishes if each not in unread][:BATCH_MAX], now, unread)

    def _apply(
        self, wishes: Sequence[Lapse | Expire], now: Instant, unread: set[Lapse | Expire]
    ) -> int:
        """How many of these were. Where a row cannot be read, halves are asked for by themselves until it shows whose."""
        if not wishes:
            return 0
        try:
            return sum(
                isinstance(each, Done)
                for each in self._counter.apply([Asked(wish, now, self._actor) for wish in wishes])
            )
        except Corrupt as corrupt:
            if len(wishes) == 1:
                _log.error(
                    "upkeep: %s is left as it is: %s; %s",
                    _describe(wishes[0]),
                    corrupt.message,
                    corrupt.remedy,
                )
                unread.add(wishes[0])
                return 0
            half = len(wishes) // 2
            return self._apply(wishes[:half], now, unread) + self._apply(wishes[half:], now, unread)

    def start(self, every_seconds: float = 60) -> None:
        """Sweep in a thread of its own until `stop`."""
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
                if gone := self.delete_old_shares():
                    _log.info("upkeep: %d old figures of fair share forgotten", gone)
            except Trouble as trouble:
                _log.warning("upkeep: %s; next try in %g s", trouble.message, every_seconds)
            except Exception:  # noqa: BLE001  a fault of ours, told in full: the sweep must go on, or holds would never lapse
                _log.exception("upkeep failed; next try in %g s", every_seconds)


def _describe(wish: Lapse | Expire) -> str:
    return (
        f"the hold of run {wish.run}"
        if isinstance(wish, Lapse)
        else f"the end of allocation {wish.allocation}"
    )
