"""The core between a plug-in, a disk and a bank that do what a test wants, in whatever order it wants: no thread, no clock, no wire."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

import msgspec

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.rest.bodies.answers import ReportAnswer
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.hearing import hear
from fairbank.slurm.agent.letters import Letter, bulk
from fairbank.slurm.agent.outbox import Outbox
from fairbank.slurm.agent.pool import Senders
from fairbank.slurm.agent.queue import WINDOW, Queue
from fairbank.slurm.agent.settling import answered, failed
from fairbank.slurm.agent.silence import PartitionTerms
from fairbank.slurm.records import Noted, PrologAsked, Verdict
from fairbank.slurm.report_results import judged
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
        senders: Senders | None = None,
        window: int = WINDOW,
    ) -> None:
        """`window`: how many letters that are no open questions are kept in memory."""
        self.path, self.bank, self.terms = folder / "outbox.sqlite", bank, terms
        self._senders, self._window = senders or Senders(1, 3, 5, gather=0), window
        self.now = 1_000.0
        self.door: object = object()
        self.told: dict[int, Said] = {}
        self.settled: list[tuple[PrologAsked, Verdict]] = []
        self._numbers = count(1)
        self.under_way: list[list[Letter]] = []
        self.full = False
        self.start()

    # ------------------------------------------------------------------ the agent

    def start(self) -> None:
        self.outbox = Outbox(self.path)
        self.core = Core(
            lambda partition: self.terms, self._senders, life=f"life{next(_lives)}", now=self.now
        )
        self.core.queue = Queue(self._window)
        self.core.restore(*self.outbox.left())

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
        changes = self.core.memory.take()
        if not changes:
            return
        if self.full:
            self.core.not_stored(changes, "database or disk is full")
            return
        try:
            self.outbox.write(changes)
        except sqlite3.Error as bad:
            self.core.not_stored(changes, str(bad))
        else:
            self.core.stored(changes)

    def load(self) -> None:
        if seqs := self.core.queue.wanted():
            self.core.queue.loaded(self.outbox.read(seqs))

    # ------------------------------------------------------------------ the plug-in

    def say(self, told: Said) -> None:
        number = next(self._numbers)
        self.told[number] = msgspec.structs.replace(told, number=number)
        hear(self.core, self.told[number], self.door, self.now)

    def again(self, number: int) -> None:
        """A frame comes twice."""
        hear(self.core, self.told[number], self.door, self.now)

    def reconnect(self) -> None:
        """Another connection: all that was not answered is said again."""
        self.door = object()
        for each in list(self.told.values()):
            hear(self.core, each, self.door, self.now)

    def listen(self) -> None:
        """Take the answers."""
        sayings, self.core.sayings = self.core.sayings, []
        for receipt, answer in sayings:
            if receipt.door is not self.door or not isinstance(answer, Noted | Verdict):
                continue
            told = self.told.pop(answer.number, None)
            if isinstance(told, PrologAsked):
                assert isinstance(answer, Verdict), "a question wants a verdict"
                self.settled.append((told, answer))

    # ------------------------------------------------------------------ the bank

    def send(self) -> bool:
        """A request leaves, if one may."""
        batch = self.core.next_request(self.now)
        if batch:
            self.under_way.append(batch)
        return bool(batch)

    def arrive(
        self, which: int = 0, *, reaches: bool = True, comes_back: bool = True
    ) -> list[ReportAnswer]:
        """A request under way reaches the bank or not, and its answer comes back or not."""
        batch = self.under_way.pop(which % len(self.under_way))
        came = self.bank.bulk(bulk(batch)) if reaches else []
        if reaches and comes_back:
            answered(self.core, batch, [judged(each) for each in came], self.now)
        else:
            self.trouble(batch, Unavailable("nobody answers"))
        return came

    def trouble(self, batch: list[Letter], trouble: FairbankError) -> None:
        failed(self.core, batch, trouble, self.now)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.core.tick(self.now)

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
            if not self.told and not len(self.core.queue) and not self.core.memory.changes:
                return
            self.pass_time(1.0)
        raise AssertionError(
            f"stuck: {len(self.core.queue)} letters, {self.told}, {self.core.memory.changes}"
        )

    def close(self) -> None:
        self.outbox.close()
