"""Which of the jobs that were held for lack of credit go on now that there is credit: few at a time, and none for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from fairbank.slurm.parsers.held_jobs import HeldJob

QUOTES_MAX = 100
"""Jobs that the bank is asked about in one round."""

RELEASES_MAX = 5
"""How often one job is released: what is held again each time lacks something that a quote does not see, and is for an operator."""

FORGOTTEN_SECONDS = 7 * 24 * 3_600.0
"""How long a job is remembered that is not held any more: it may be held again when it comes to its start."""


class HoldQuote(msgspec.Struct, frozen=True):
    """What the bank says of a job: its price, and what the allocation that would carry it has left, both in SU-minutes."""

    amount: int
    allocation: int | None
    available: int
    fits: bool


class HeldJobRecord(msgspec.Struct):
    """When a job was held last, when it was looked at last (None: not yet), and how often it was released."""

    last_held: float
    last_quoted: float | None = None
    releases: int = 0


class ReleaseSchedule:
    """Whose turn it is. `again`: seconds between two looks at the same job."""

    def __init__(self, again: float) -> None:
        self._again = again
        self._seen: dict[str, HeldJobRecord] = {}

    def due(self, held: Iterable[HeldJob], now: float) -> list[HeldJob]:
        """The next to be looked at, those first that have waited longest for it; they count as looked at."""
        waiting: list[tuple[float, HeldJob]] = []
        for each in held:
            seen = self._seen.setdefault(each.name, HeldJobRecord(now))
            seen.last_held = now
            if self._is_due(seen, now):
                waiting.append((0.0 if seen.last_quoted is None else seen.last_quoted, each))
        self._seen = {
            name: seen for name, seen in self._seen.items() if now - seen.last_held < FORGOTTEN_SECONDS
        }
        found = [each for _, each in sorted(waiting, key=lambda pair: pair[0])[:QUOTES_MAX]]
        for each in found:
            self._seen[each.name].last_quoted = now
        return found

    def _is_due(self, seen: HeldJobRecord, now: float) -> bool:
        return (seen.last_quoted is None or now - seen.last_quoted >= self._again) and seen.releases < RELEASES_MAX

    def put_back(self, each: HeldJob) -> None:
        """Its turn did not come after all: it is due again at once."""
        self._seen[each.name].last_quoted = None

    def count_release(self, each: HeldJob) -> None:
        """It goes on."""
        self._seen[each.name].releases += 1


def affordable_jobs(offers: Sequence[tuple[HeldJob, HoldQuote]]) -> list[HeldJob]:
    """Those that can all be paid together, in this order, each from the allocation that would carry it."""
    taken: Counter[int | None] = Counter()
    found: list[HeldJob] = []
    for each, offer in offers:
        if offer.fits and taken[offer.allocation] + offer.amount <= offer.available:
            taken[offer.allocation] += offer.amount
            found.append(each)
    return found
