"""What the bank does unasked: holds lapse after their deadline, allocations end after their period."""

from __future__ import annotations

import logging
import threading

import msgspec

from fairbank.bank.ledger import Done
from fairbank.bank.wish import Asked, Expire, Lapse
from fairbank.service.counter import Counter
from fairbank.store.contract import Store
from fairbank.values.time import Clock
from fairbank.values.trouble import Trouble

_BATCH = 1_000
_log = logging.getLogger(__name__)


class Swept(msgspec.Struct, frozen=True):
    """How many holds lapsed and how many allocations were ended."""

    lapsed: int
    ended: int


class Upkeep:
    """The sweep, at once or every so often."""

    def __init__(self, store: Store, counter: Counter, clock: Clock, actor: int) -> None:
        self._store, self._counter, self._clock, self._actor = store, counter, clock, actor
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def sweep(self) -> Swept:
        """Lapse every overdue hold and end every allocation past its period; open holds there go on."""
        now = self._clock.now()
        lapsed = ended = 0
        while True:
            with self._store.reading() as reader:
                runs = reader.overdue(now, _BATCH)
                allocations = reader.expired(now, _BATCH)
            wishes: list[Lapse | Expire] = [Lapse(run=run) for run in runs]
            wishes += [Expire(allocation=number) for number in allocations]
            if not wishes:
                return Swept(lapsed, ended)
            done = [isinstance(each, Done) for each in self._counter.ask([Asked(wish, now, self._actor) for wish in wishes])]
            lapsed += sum(done[: len(runs)])
            ended += sum(done[len(runs) :])
            if not any(done):  # another server swept the same
                return Swept(lapsed, ended)

    def start(self, every_seconds: float = 60) -> None:
        """Sweep in a thread of its own until `stop`."""
        self._thread = threading.Thread(target=self._go_on, args=(every_seconds,), name="fairbank-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _go_on(self, every_seconds: float) -> None:
        while not self._stop.wait(every_seconds):
            try:
                swept = self.sweep()
                if swept.lapsed or swept.ended:
                    _log.info("upkeep: %d holds lapsed, %d allocations ended", swept.lapsed, swept.ended)
            except Trouble as trouble:
                _log.warning("upkeep: %s; next try in %g s", trouble.message, every_seconds)
            except Exception:  # noqa: BLE001  a fault of ours, told in full: the sweep must go on, or holds would never lapse
                _log.exception("upkeep failed; next try in %g s", every_seconds)
