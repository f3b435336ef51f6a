"""Runs and open questions that the agent knows, and the changes to write to the outbox."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import islice

import msgspec

from fairbank.agent.protocol import FromAgent, PluginMessage, PrologRequest, Verdict
from fairbank.agent.reports.report import PendingReport, Receipt
from fairbank.agent.run_states import AgentRunState
from fairbank.cluster.run_report import RunPiece
from fairbank.core.units import exact_decimal

ENDED_KEPT = 50_000
LIVE_KEPT = 200_000
"""Beyond these the oldest runs are forgotten. The bank's figures stay right: the agent only sends
reports that it would else know to be unnecessary."""

UNWRITTEN_MAX = 50_000  # runs whose state waits for a disk that cannot be written

Reply = tuple[Receipt, FromAgent]


def replies_to(receipts: Iterable[Receipt], verdict: Verdict) -> list[Reply]:
    """Return the verdict as the reply to each of these requests."""
    return [
        (receipt, msgspec.structs.replace(verdict, number=receipt.number)) for receipt in receipts
    ]


class KnownRun(msgspec.Struct, frozen=True, gc=False):
    """State of a run, its last time limit in seconds, and the refusal if it was refused.

    `billing` are its last billing units, `pieces` those before each change of its resources, and
    `suspended` the seconds of its suspensions.
    """

    state: AgentRunState
    limit: int | None = None
    refusal: Verdict | None = None
    billing: str = ""
    pieces: tuple[RunPiece, ...] = ()
    suspended: int = 0

    def pieces_of(self, message: PluginMessage) -> tuple[RunPiece, ...]:
        """Return the pieces of the run before its last change of resources.

        The time of a change comes with each later message. A change without another price makes a
        piece too: the run had another size before. If the billing before it is unknown, the piece
        has that of the message.
        """
        if message.resized is None or isinstance(message, PrologRequest):
            return self.pieces
        before = sum(piece.seconds for piece in self.pieces)
        seconds = message.resized - message.start - message.suspended_seconds - before
        if seconds <= 0:
            return self.pieces
        billing = Decimal(self.billing or exact_decimal(message.billing))
        return (*self.pieces, RunPiece(seconds=seconds, billing=billing))


class OutboxChanges(msgspec.Struct, eq=False):
    """Changes for one transaction of the outbox; None deletes a report or a run.

    `replies` are sent once the transaction is committed.
    """

    reports: dict[int, PendingReport | None] = {}
    runs: dict[str, KnownRun | None] = {}
    credit: bytes | None = None
    replies: list[Reply] = []

    def __bool__(self) -> bool:
        return bool(self.reports or self.runs or self.credit or self.replies)


UNKNOWN_RUN = KnownRun(AgentRunState.NEW)
_ENDED = KnownRun(AgentRunState.ENDED)


class RunMemory:
    """Known runs and the changes that are not in the outbox yet.

    Invariant: a run is in `_live` or in `_ended`, never in both; a WAITING run is not forgotten,
    because slurmctld waits for its verdict.
    """

    def __init__(self, live: int = LIVE_KEPT, ended: int = ENDED_KEPT) -> None:
        self._live_kept, self._ended_kept = live, ended
        self._live: OrderedDict[str, KnownRun] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.changes = OutboxChanges()

    def restore(self, runs: Iterable[tuple[str, KnownRun]]) -> None:
        for run, known in runs:
            if known.state is AgentRunState.ENDED:
                self._ended[run] = None
            else:
                self._live[run] = known

    def __len__(self) -> int:
        return len(self._live)

    def get(self, run: str) -> KnownRun | None:
        return _ENDED if run in self._ended else self._live.get(run)

    def put(self, run: str, known: KnownRun) -> None:
        """Set the state of a run; forget the oldest runs beyond the limits."""
        self.changes.runs[run] = known
        if known.state is AgentRunState.ENDED:
            self._live.pop(run, None)
            self._ended[run] = None
            if len(self._ended) > self._ended_kept:
                oldest, _ = self._ended.popitem(last=False)
                self.changes.runs[oldest] = None
            return
        self._ended.pop(run, None)
        self._live[run] = known
        if len(self._live) > self._live_kept:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        for run, known in self._live.items():
            if known.state is not AgentRunState.WAITING:
                del self._live[run]
                self.changes.runs[run] = None
                return

    def keep(self, report: PendingReport) -> None:
        """Have a report written to the outbox."""
        self.changes.reports[report.seq] = report

    def drop(self, report: PendingReport) -> None:
        """Have a report deleted from the outbox, or not written at all."""
        if report.stored or self.changes.reports.pop(report.seq, None) is None:
            self.changes.reports[report.seq] = None

    def take(self) -> OutboxChanges:
        """Return the changes for the next transaction, and start to collect new ones."""
        changes, self.changes = self.changes, OutboxChanges()
        return changes

    def give_back(self, failed: OutboxChanges) -> None:
        """Put back the changes of a transaction that failed, behind later ones.

        Their replies are not kept: the caller sends them all the same.
        """
        later = self.changes
        self.changes = OutboxChanges(
            {**failed.reports, **later.reports},
            {**failed.runs, **later.runs},
            later.credit or failed.credit,
            later.replies,
        )
        excess = len(self.changes.runs) - UNWRITTEN_MAX
        # Only what the next agent would know of these runs is lost; the reports stay.
        for run in list(islice(self.changes.runs, max(0, excess))):
            del self.changes.runs[run]


_RECEIPTS_KEPT = 4  # of a request that the plug-in repeats; it waits for the newest


class PrologQuestion(msgspec.Struct, eq=False):
    """Prolog request without a verdict. `report` is None if an agent before this one sent it."""

    request: PrologRequest
    received: float
    deadline: float
    receipts: tuple[Receipt, ...]
    report: PendingReport | None

    def join(self, receipt: Receipt) -> None:
        """Add the receipt of a repeated request."""
        self.receipts = (*self.receipts[1 - _RECEIPTS_KEPT :], receipt)


class PrologQuestions:
    """Questions by their runs (`open`), and their deadlines."""

    def __init__(self) -> None:
        self.open: dict[str, PrologQuestion] = {}
        # Also of questions that were decided since; they are skipped when their time comes.
        self._deadlines: list[tuple[float, str]] = []

    def add(self, run: str, question: PrologQuestion) -> None:
        self.open[run] = question
        heapq.heappush(self._deadlines, (question.deadline, run))

    def overdue(self, now: float) -> Iterator[tuple[str, PrologQuestion]]:
        """Yield the questions that have waited long enough, with their runs."""
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, run = heapq.heappop(self._deadlines)
            question = self.open.get(run)
            if question is not None and question.deadline == deadline:
                yield run, question

    def shorten(self, deadline_of: Callable[[PrologQuestion], float]) -> None:
        """Set the deadlines of open questions that are earlier now."""
        for run, question in self.open.items():
            if (deadline := deadline_of(question)) < question.deadline:
                question.deadline = deadline
                heapq.heappush(self._deadlines, (deadline, run))

    def next_deadline(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None
