"""Faults on a running cluster: processes are killed and restarted, the bank is unavailable, the
disk is full, messages are disordered.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.faults.nemesis import begin
from tests.slurm.bank_cluster import Office
from tests.slurm.faulty_socket import Mischief, Mood
from tests.slurm.lab.daemons import SLURMCTLD, SLURMDBD
from tests.slurm.load import Load
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.small_disk import fill

Fault: TypeAlias = Callable[[], None]
MOODS = (Mood.DOUBLE, Mood.LATE, Mood.SHUFFLE, Mood.CUT)
PATIENCE = 300


@dataclass
class Spans:
    """Periods of one condition. `since` is the start of the current period."""

    spans: list[tuple[float, float]] = field(default_factory=list)
    since: float | None = None

    @contextmanager
    def now(self) -> Iterator[None]:
        self.since = time.monotonic()
        try:
            yield
        finally:
            self.spans.append((self.since, time.monotonic()))
            self.since = None

    def touch(self, begun: float, ended: float) -> bool:
        """Return True if one of the periods overlaps this one."""
        now = [] if self.since is None else [(self.since, ended)]
        return any(begun <= last and first <= ended for first, last in self.spans + now)

    def longest(self) -> float:
        """Return the length in seconds of the longest period that is over."""
        return max((last - first for first, last in self.spans), default=0.0)


@dataclass
class Troubles:
    """Fault injector. It injects faults one by one, with new jobs between them, and repairs each.
    The bank is unavailable for at most `away_seconds`, and once for `long_seconds`.
    """

    office: Office
    postgres: PostgresServer
    disk: Path
    mischief: tuple[Mischief, Mischief]
    load: Load
    rng: random.Random
    away_seconds: float
    long_seconds: float
    done: Counter[str] = field(default_factory=Counter)
    without_controller: Spans = field(default_factory=Spans)
    without_bank: Spans = field(default_factory=Spans)
    unsaved: list[tuple[float, float]] = field(default_factory=list)
    """Periods that slurmctld had not saved when it was killed."""
    resets: list[tuple[float, float]] = field(default_factory=list)
    _moods: Iterator[Mood] = field(default_factory=lambda: itertools.cycle(MOODS))

    def strike(self, times: int, resets: int) -> None:
        """Inject `times` faults in random order, each kind about equally often."""
        kinds: list[tuple[str, Fault]] = [
            ("agent killed", self._kill_agent),
            ("bank killed", self._kill_bank),
            ("PostgreSQL killed", self._kill_postgres),
            ("slurmctld killed", self._kill_controller),
            ("slurmdbd killed", self._kill_accounting),
            ("bank away", self._bank_away),
            ("bank frozen", self._bank_frozen),
            ("outbox disk full", self._disk_full),
            ("messages of the plug-in in disorder", lambda: self._disorder(self.mischief[0], 20)),
            ("messages to the bank in disorder", lambda: self._disorder(self.mischief[1], 6)),
        ]
        order = [kinds[number % len(kinds)] for number in range(times - resets)] + [
            ("state reset", self._reset)
        ] * resets
        self.rng.shuffle(order)
        for name, fault in order:
            self.load.wait_for_more(self.rng.randint(2, 8))
            fault()
            self.done[name] += 1

    def _kill_agent(self) -> None:
        self.office.agent.kill()
        self.office.agent.start()

    def _kill_bank(self) -> None:
        with self.without_bank.now():
            self.office.bank.kill()
            begin(self.office.bank)

    def _kill_postgres(self) -> None:
        with self.without_bank.now():
            self.postgres.kill()
            self.load.wait_for_more(1)
            self.postgres.start()
            begin(self.office.bank)

    def _kill_controller(self) -> None:
        with self.without_controller.now():
            self.office.slurm.kill(SLURMCTLD)
            self.unsaved.append((self.office.slurm.written_down_at(), time.time()))
            self.office.slurm.start(SLURMCTLD)
            self._wait_for_controller()

    def _kill_accounting(self) -> None:
        self.office.slurm.kill(SLURMDBD)
        self.load.wait_for_more(3)
        self.office.slurm.start(SLURMDBD)

    def _bank_away(self) -> None:
        """Stop the bank; the first time for long."""
        self._without_bank_for(self._a_while() if self.done["bank away"] else self.long_seconds)

    def _without_bank_for(self, seconds: float) -> None:
        with self.without_bank.now():
            self.office.bank.kill()
            _let_pass(seconds)
            begin(self.office.bank)

    def _bank_frozen(self) -> None:
        """Suspend the bank: it accepts connections and does not answer."""
        with self.without_bank.now():
            os.kill(self.office.bank.pid, signal.SIGSTOP)
            try:
                _let_pass(self._a_while())
            finally:
                os.kill(self.office.bank.pid, signal.SIGCONT)

    def _disk_full(self) -> None:
        """Fill the outbox's disk, with the bank available or not."""
        filler = fill(self.disk)
        try:
            if self.rng.random() < 0.5:
                self.load.wait_for_more(10)
            else:
                self._without_bank_for(self._a_while())
        finally:
            filler.unlink()

    def _disorder(self, proxy: Mischief, messages: int) -> None:
        """Apply the next message fault until it has affected some messages."""
        mood = next(self._moods)
        target = proxy.done[mood.value] + messages
        proxy.mood = mood
        try:
            wait_until(
                lambda: proxy.done[mood.value] >= target,
                f"{messages} messages to be {mood.value}",
                seconds=PATIENCE,
            )
        finally:
            proxy.mood = Mood.CALM

    def _reset(self) -> None:
        """Make slurmctld lose all jobs and restart its numbers at 1."""
        with self.without_controller.now(), self.load.paused():
            begun = time.time()
            self.office.slurm.empty()
            self.resets.append((begun, time.time()))
            self.unsaved.append(self.resets[-1])

    def _a_while(self) -> float:
        return self.rng.uniform(0.3, 1) * self.away_seconds

    def _wait_for_controller(self) -> None:
        wait_until(
            lambda: self.office.slurm.run("root", "scontrol", "ping").code == 0,
            "slurmctld to answer",
            seconds=PATIENCE,
        )


def _let_pass(seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > until, "the while to be over", seconds=seconds + PATIENCE)
