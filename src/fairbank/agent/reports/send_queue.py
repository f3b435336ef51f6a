"""Send queue: the order in which reports go to the bank. No I/O."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from fairbank.agent.reports.report import PendingReport, ReportKind
from fairbank.core.time import DAY

WINDOW = 4_000  # reports in memory that no job waits for
REFILL = 1_000  # reports that are read back from disk at once
FULL_BATCH = 100  # reports that go at once, without waiting for more
FIRST_RETRY_SECONDS = 600


class SendQueue:
    """Send queue of the reports that the bank has not answered.

    Invariants
    1. Prolog questions (`_urgent`) go before all other reports (`_normal`).
    2. The reports of a run go in their order, and a run is in at most one request at a time:
       `_busy` has the runs in a request, `_held_back` those in the parts of a failed request.
    3. A report is in exactly one place: `_urgent`, `_normal`, `_in_flight`, a part in `_parts`,
       `_spilling` (no space in memory, not on disk yet) or `_on_disk` (by number). `_loading` of
       those on disk are being read.
    4. While reports wait on disk, new ones without a waiting prolog go behind them, to disk.
    5. The halves of a failed request go one after the other (`_part_in_flight`), because both may
       have reports of one run.
    6. Reports that a later one of the same run supersedes are dropped (`drop_superseded`).
    """

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._urgent: OrderedDict[int, PendingReport] = OrderedDict()
        self._normal: OrderedDict[int, PendingReport] = OrderedDict()
        self._waiting_of_run: Counter[str] = Counter()  # reports in _urgent and _normal
        self._in_flight: dict[int, PendingReport] = {}
        self._busy: set[str] = set()
        self._parts: deque[list[PendingReport]] = deque()
        self._held_back: Counter[str] = Counter()
        self._part_in_flight: set[int] = set()
        self._spilling: set[int] = set()
        self._on_disk: deque[int] = deque()
        self._loading = 0

    def __len__(self) -> int:
        places = (self._urgent, self._normal, self._in_flight, self._spilling, *self._parts)
        return sum(map(len, places)) + self.on_disk_only

    @property
    def on_disk_only(self) -> int:
        return len(self._on_disk) + self._loading

    @property
    def is_split(self) -> bool:
        """Return True if parts of a request that failed as a whole wait."""
        return bool(self._parts)

    def oldest(self) -> float | None:
        """Return the time of the oldest report in memory."""
        places = (self._in_flight, self._urgent, self._normal)
        first = [next(iter(place.values())).created for place in places if place]
        return min([*first, *(part[0].created for part in self._parts)], default=None)

    def due(self, gather: float) -> float | None:
        """Return when the next request must go, parts apart; None when no report may be sent.

        A question goes at once and takes along what waits. Other reports wait `gather` seconds for
        more to go with them, unless there are enough for a batch.
        """
        question, report = self._first_free(self._urgent), self._first_free(self._normal)
        if question is not None or report is None:
            return question
        return report if len(self._normal) >= FULL_BATCH else report + gather

    def _first_free(self, place: OrderedDict[int, PendingReport]) -> float | None:
        return next(
            (report.created for report in place.values() if self._is_free(report.run)), None
        )

    # ------------------------------------------------------------------ adding reports

    def add(self, report: PendingReport, *, urgent: bool = False) -> bool:
        """Add a report; return whether memory had space for it.

        A report without space must be passed to `spilled` once it is on disk, or to `force`. An
        urgent report always has space, and goes first unless another of its run waits.
        """
        if urgent and not self._waiting_of_run[report.run]:
            self._put(self._urgent, report)
            return True
        behind_others = bool(self._spilling or self.on_disk_only)
        if not urgent and (behind_others or len(self._normal) >= self._window):
            self._spilling.add(report.seq)
            return False
        self._put(self._normal, report)
        return True

    def is_spilling(self, report: PendingReport) -> bool:
        """Return whether the report had no space in memory and is not on disk yet."""
        return report.seq in self._spilling

    def force(self, report: PendingReport) -> None:
        """Keep a report in memory beyond the window, because the disk cannot be written."""
        self._spilling.discard(report.seq)
        self._put(self._normal, report)

    def spilled(self, seqs: Sequence[int]) -> None:
        """Record that these reports are on disk and not in memory."""
        self._spilling.difference_update(seqs)
        self._on_disk.extend(seqs)

    def take_wanted(self) -> list[int]:
        """Return the numbers of reports that must be read from disk now."""
        # Half a window: so a refill fits, and the disk is read in large steps.
        if self._loading or not self._on_disk or len(self._normal) > self._window // 2:
            return []
        seqs = [self._on_disk.popleft() for _ in range(min(REFILL, len(self._on_disk)))]
        self._loading = len(seqs)
        return seqs

    def loaded(self, reports: Iterable[PendingReport]) -> None:
        """Add the reports that were read; some may have been withdrawn meanwhile."""
        self._loading = 0
        for report in reports:
            self._put(self._normal, report)

    def not_loaded(self, seqs: list[int]) -> None:
        """Put back the numbers of reports that could not be read."""
        self._loading = 0
        self._on_disk.extendleft(reversed(seqs))

    def _put(self, place: OrderedDict[int, PendingReport], report: PendingReport) -> None:
        place[report.seq] = report
        self._waiting_of_run[report.run] += 1

    def _pop(self, place: OrderedDict[int, PendingReport], report: PendingReport) -> None:
        del place[report.seq]
        self._waiting_of_run[report.run] -= 1
        if not self._waiting_of_run[report.run]:
            del self._waiting_of_run[report.run]

    # ------------------------------------------------------------------ sending reports

    def take(self, limit: int) -> tuple[list[PendingReport], list[PendingReport]]:
        """Return the reports of the next request, and superseded ones; both may be empty."""
        if self._parts and not self._part_in_flight:
            batch = self._parts.popleft()
            self._part_in_flight = {report.seq for report in batch}
            self._held_back -= Counter(report.run for report in batch)
        else:
            batch = self._collect(limit)
        batch, superseded = drop_superseded(batch)
        for report in batch:
            self._in_flight[report.seq] = report
            self._busy.add(report.run)
            report.attempts += 1
        return batch, superseded

    def _collect(self, limit: int) -> list[PendingReport]:
        batch: list[PendingReport] = []
        for place in (self._urgent, self._normal):
            # Only the first 2 * limit: a long queue of busy runs must not be scanned each time.
            candidates = islice(place.values(), limit * 2)
            free = [report for report in candidates if self._is_free(report.run)]
            for report in free[: limit - len(batch)]:
                self._pop(place, report)
                batch.append(report)
        return batch

    def _is_free(self, run: str) -> bool:
        return run not in self._busy and run not in self._held_back

    def done(self, report: PendingReport) -> None:
        """Remove a report that was answered."""
        self._in_flight.pop(report.seq, None)
        self._part_in_flight.discard(report.seq)
        self._busy.discard(report.run)

    def put_back(self, reports: list[PendingReport], *, urgent: Iterable[str] = ()) -> None:
        """Put back the reports of a request that was not answered, before all others.

        For the hold reports of the runs in `urgent` slurmctld waits.
        """
        if self._part_in_flight.intersection(report.seq for report in reports):
            self._put_part(reports)
            return
        urgent_runs = frozenset(urgent)
        for report in reversed(reports):
            self.done(report)
            is_question = report.run in urgent_runs and report.kind is ReportKind.HOLD
            place = self._urgent if is_question else self._normal
            self._put(place, report)
            place.move_to_end(report.seq, last=False)

    def split(self, reports: list[PendingReport]) -> None:
        """Put back the reports of a failed request as two parts, each to be tried by itself."""
        middle = (len(reports) + 1) // 2
        for half in (reports[middle:], reports[:middle]):
            self._put_part(half)

    def _put_part(self, reports: list[PendingReport]) -> None:
        if reports:
            self._parts.appendleft(reports)
        for report in reports:
            self._part_in_flight.discard(report.seq)
            self._in_flight.pop(report.seq, None)
            self._busy.discard(report.run)
            self._held_back[report.run] += 1

    # ------------------------------------------------------------------ changing reports

    def deprioritise(self, report: PendingReport) -> None:
        """Move a question that was decided meanwhile behind the others, as `add` does."""
        if report.seq in self._urgent:
            self._pop(self._urgent, report)
            self.add(report)

    def withdraw(self, report: PendingReport) -> bool:
        """Remove a report unless it is in a request or on disk only; return whether."""
        for place in (self._urgent, self._normal):
            if report.seq in place:
                self._pop(place, report)
                return True
        return False


def drop_superseded(batch: list[PendingReport]) -> tuple[list[PendingReport], list[PendingReport]]:
    """Return the reports of a request that must be sent, and those that later ones supersede.

    A time limit is superseded by another one and by the end. A hold never is, not even by the end
    of a run that never started: an agent before this one may have sent it, and then only the end
    releases it.
    """
    superseded: set[int] = set()
    followed: set[str] = set()
    for report in reversed(batch):
        if report.kind is ReportKind.ADJUST and report.run in followed:
            superseded.add(report.seq)
        followed.add(report.run)
    return (
        [report for report in batch if report.seq not in superseded],
        [report for report in batch if report.seq in superseded],
    )


class RetryLater:
    """Ends that are too early for the bank's clock: not in the queue, and sent again later.

    The first wait is ten minutes; each further one is twice as long, at most a day. They stay in
    the outbox, and the next agent sends all of them at once.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, PendingReport]] = []  # (due, sequence number, report)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, report: PendingReport, now: float) -> None:
        pause = min(FIRST_RETRY_SECONDS * 2 ** (report.attempts - 1), DAY)
        heapq.heappush(self._waiting, (now + pause, report.seq, report))

    def take_due(self, now: float) -> Iterator[PendingReport]:
        """Remove and yield the reports whose time has come."""
        while self._waiting and self._waiting[0][0] <= now:
            yield heapq.heappop(self._waiting)[2]
