"""The core between a plug-in, a disk and a bank that do what a test wants, in whatever order it wants: no thread, no clock, no wire."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

import msgspec

from fairbank.agent.engine import Engine
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.outbox import Outbox
from fairbank.agent.protocol.messages import Ack, PrologRequest, Verdict
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.agent.reports.report import PendingReport
from fairbank.agent.reports.results import bulk_body, result_of
from fairbank.agent.reports.send_queue import WINDOW, SendQueue
from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.schemas.job import ReportAnswer
from tests.agent.bank import InProcessBank
from tests.agent.plugin import Said

_lives = count(1)


class World:
    """`told` is what the plug-in has said and got no answer to, by number; `settled` are questions with their verdicts."""

    def __init__(
        self,
        folder: Path,
        bank: InProcessBank,
        terms: PartitionTerms,
        *,
        senders: SenderSettings | None = None,
        window: int = WINDOW,
    ) -> None:
        """`window`: how many letters that are no open questions are kept in memory."""
        self.path, self.bank, self.terms = folder / "outbox.sqlite", bank, terms
        self._senders, self._window = senders or SenderSettings(1, 3, 5, gather=0), window
        self.now = 1_000.0
        self.connection: object = object()
        self.told: dict[int, Said] = {}
        self.settled: list[tuple[PrologRequest, Verdict]] = []
        self._numbers = count(1)
        self.under_way: list[list[PendingReport]] = []
        self.full = False
        self.start()

    # ------------------------------------------------------------------ the agent

    def start(self) -> None:
        self.outbox = Outbox(self.path)
        self.engine = Engine(
            lambda partition: self.terms, self._senders, life=f"life{next(_lives)}", now=self.now
        )
        self.engine.flow.queue = SendQueue(self._window)
        self.engine.restore(*self.outbox.content())

    def kill(self) -> None:
        """kill -9: what was not written is lost, and so are answers under way. Another agent starts; the plug-in finds it."""
        self.outbox.close()
        self.under_way.clear()
        self.start()
        self.reconnect()

    def lose_memory(self) -> None:
        """Another agent starts, and the folder of the one before it is gone."""
        self.outbox.close()
        self.under_way.clear()
        for each in self.path.parent.glob(f"{self.path.name}*"):
            each.unlink()
        self.start()
        self.reconnect()

    def write(self) -> None:
        """The disk takes what is to be written, or is full."""
        changes = self.engine.flow.memory.take()
        if not changes:
            return
        if self.full:
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

    def say(self, told: Said) -> None:
        number = next(self._numbers)
        self.told[number] = msgspec.structs.replace(told, number=number)
        self.engine.handle_message(self.told[number], self.connection, self.now)

    def again(self, number: int) -> None:
        """A frame comes twice."""
        self.engine.handle_message(self.told[number], self.connection, self.now)

    def reconnect(self) -> None:
        """Another connection: all that was not answered is said again."""
        self.connection = object()
        for each in list(self.told.values()):
            self.engine.handle_message(each, self.connection, self.now)

    def listen(self) -> None:
        """Take the answers."""
        for receipt, answer in self.engine.flow.take_replies():
            if receipt.connection is not self.connection or not isinstance(answer, Ack | Verdict):
                continue
            told = self.told.pop(answer.number, None)
            if isinstance(told, PrologRequest):
                assert isinstance(answer, Verdict), "a question wants a verdict"
                self.settled.append((told, answer))

    # ------------------------------------------------------------------ the bank

    def send(self) -> bool:
        """A request leaves, if one may."""
        batch = self.engine.flow.next_request(self.now)
        if batch:
            self.under_way.append(batch)
        return bool(batch)

    def arrive(
        self, which: int = 0, *, reaches: bool = True, comes_back: bool = True
    ) -> list[ReportAnswer]:
        """A request under way reaches the bank or not, and its answer comes back or not."""
        batch = self.under_way.pop(which % len(self.under_way))
        came = self.bank.bulk(bulk_body([report.body for report in batch])) if reaches else []
        if reaches and comes_back:
            self.engine.handle_results(batch, [result_of(each) for each in came], self.now)
        else:
            self.trouble(batch, Unavailable("nobody answers"))
        return came

    def trouble(self, batch: list[PendingReport], trouble: FairbankError) -> None:
        self.engine.handle_failure(batch, trouble, self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.engine.tick(self.now)

    def settle(self, rounds: int = 400) -> None:
        """Everything works again, until nothing is left to do."""
        self.full = False
        for _ in range(rounds):
            self.load()
            while self.send():
                pass
            while self.under_way:
                self.arrive()
            self.write()
            self.listen()
            if (
                not self.told
                and not len(self.engine.flow.queue)
                and not self.engine.flow.memory.changes
            ):
                return
            self.pass_time(1.0)
        raise AssertionError(
            f"stuck: {len(self.engine.flow.queue)} reports, {self.told}, "
            f"{self.engine.flow.memory.changes}"
        )

    def close(self) -> None:
        self.outbox.close()
