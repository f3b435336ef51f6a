"""Simulated world of the engine: a plug-in, an outbox and a bank, without threads, clock or
sockets.
"""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

import msgspec

from fairbank.agent.engine import Engine
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.outbox import Outbox
from fairbank.agent.protocol import Ack, PrologRequest, Verdict
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.agent.reports.report import PendingReport, result_of
from fairbank.agent.reports.send_queue import WINDOW, SendQueue
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.client.bulk_reports import bulk_body
from fairbank.rest.schemas.answers import ReportAnswer
from tests.agent.bank import InProcessBank
from tests.agent.plugin import RunMessage

_instances = count(1)


class World:
    """Simulated world of one engine. `unanswered` has the unanswered messages by number, `verdicts`
    the requests with their verdicts.
    """

    def __init__(
        self,
        folder: Path,
        bank: InProcessBank,
        terms: PartitionTerms,
        *,
        senders: SenderSettings | None = None,
        window: int = WINDOW,
    ) -> None:
        """Create the world; `window`: maximum number of reports in memory that no job waits for."""
        self.path, self.bank, self.terms = folder / "outbox.sqlite", bank, terms
        self._senders, self._window = senders or SenderSettings(1, 3, 5, gather=0), window
        self.now = 1_000.0
        self.connection: object = object()
        self.unanswered: dict[int, RunMessage] = {}
        self.verdicts: list[tuple[PrologRequest, Verdict]] = []
        self._numbers = count(1)
        self.in_flight: list[list[PendingReport]] = []
        self.disk_full = False
        self.start()

    # ------------------------------------------------------------------ the agent

    def start(self) -> None:
        self.outbox = Outbox(self.path)
        self.engine = Engine(
            lambda partition: self.terms,
            self._senders,
            instance=f"agent{next(_instances)}",
            now=self.now,
        )
        self.engine.flow.queue = SendQueue(self._window)
        self.engine.restore(*self.outbox.content())

    def kill(self) -> None:
        """Kill the agent: unwritten changes and answers in flight are lost. Another agent
        starts.
        """
        self.outbox.close()
        self.in_flight.clear()
        self.start()
        self.reconnect()

    def lose_outbox(self) -> None:
        """Start another agent without the previous outbox."""
        self.outbox.close()
        self.in_flight.clear()
        for path in self.path.parent.glob(f"{self.path.name}*"):
            path.unlink()
        self.start()
        self.reconnect()

    def write(self) -> None:
        """Write the changes to the outbox, unless the disk is full."""
        changes = self.engine.flow.memory.take()
        if not changes:
            return
        if self.disk_full:
            self.engine.flow.not_stored(changes, "database or disk is full")
            return
        try:
            self.outbox.write(changes)
        except sqlite3.Error as bad:
            self.engine.flow.not_stored(changes, str(bad))
        else:
            self.engine.flow.stored(changes)

    def load(self) -> None:
        if seqs := self.engine.flow.queue.take_wanted():
            self.engine.flow.queue.loaded(self.outbox.read(seqs))

    # ------------------------------------------------------------------ the plug-in

    def deliver(self, message: RunMessage) -> None:
        number = next(self._numbers)
        self.unanswered[number] = msgspec.structs.replace(message, number=number)
        self.engine.handle_message(self.unanswered[number], self.connection, self.now)

    def repeat(self, number: int) -> None:
        """Deliver a message twice."""
        self.engine.handle_message(self.unanswered[number], self.connection, self.now)

    def reconnect(self) -> None:
        """Open another connection and deliver all unanswered messages again."""
        self.connection = object()
        for message in list(self.unanswered.values()):
            self.engine.handle_message(message, self.connection, self.now)

    def read_replies(self) -> None:
        """Read the replies to the plug-in."""
        for receipt, answer in self.engine.flow.take_replies():
            if receipt.connection is not self.connection or not isinstance(answer, Ack | Verdict):
                continue
            request = self.unanswered.pop(answer.number, None)
            if isinstance(request, PrologRequest):
                assert isinstance(answer, Verdict), "a question wants a verdict"
                self.verdicts.append((request, answer))

    # ------------------------------------------------------------------ the bank

    def send(self) -> bool:
        """Send a request if one is due; return True if it was sent."""
        batch = self.engine.flow.next_request(self.now)
        if batch:
            self.in_flight.append(batch)
        return bool(batch)

    def finish_request(
        self, which: int = 0, *, is_received: bool = True, is_answered: bool = True
    ) -> list[ReportAnswer]:
        """Finish a request in flight, with or without the bank's receipt and its answer."""
        batch = self.in_flight.pop(which % len(self.in_flight))
        answers = (
            self.bank.bulk(bulk_body([report.body for report in batch])) if is_received else []
        )
        if is_received and is_answered:
            self.engine.handle_results(batch, [result_of(answer) for answer in answers], self.now)
        else:
            self.fail_request(batch, Unavailable("nobody answers"))
        return answers

    def fail_request(self, batch: list[PendingReport], error: FairbankError) -> None:
        self.engine.handle_failure(batch, error, self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.engine.tick(self.now)

    def run_until_idle(self, rounds: int = 400) -> None:
        """Run without faults until nothing is left to do."""
        self.disk_full = False
        for _ in range(rounds):
            self.load()
            while self.send():
                pass
            while self.in_flight:
                self.finish_request()
            self.write()
            self.read_replies()
            if (
                not self.unanswered
                and not len(self.engine.flow.queue)
                and not self.engine.flow.memory.changes
            ):
                return
            self.pass_time(1.0)
        raise AssertionError(
            f"stuck: {len(self.engine.flow.queue)} reports, {self.unanswered}, "
            f"{self.engine.flow.memory.changes}"
        )

    def close(self) -> None:
        self.outbox.close()
