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
from tests.slurm.bank_cluster import BankStack
from tests.slurm.faulty_socket import FaultyProxy, MessageFault
from tests.slurm.lab.daemons import SLURMCTLD, SLURMDBD
from tests.slurm.load import Load
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.small_disk import fill

Fault: TypeAlias = Callable[[], None]
MESSAGE_FAULTS = (
    MessageFault.DUPLICATE,
    MessageFault.DELAY,
    MessageFault.REORDER,
    MessageFault.CUT,
)
TIMEOUT_SECONDS = 300


@dataclass
class Periods:
    """Periods of one condition. `since` is the start of the current period."""

    periods: list[tuple[float, float]] = field(default_factory=list)
    since: float | None = None

    @contextmanager
    def record(self) -> Iterator[None]:
        self.since = time.monotonic()
        try:
            yield
        finally:
            self.periods.append((self.since, time.monotonic()))
            self.since = None

    def overlaps(self, begun: float, ended: float) -> bool:
        """Return True if one of the periods overlaps this one."""
        now = [] if self.since is None else [(self.since, ended)]
        return any(begun <= last and first <= ended for first, last in self.periods + now)

    def longest(self) -> float:
        """Return the length in seconds of the longest period that is over."""
        return max((last - first for first, last in self.periods), default=0.0)


@dataclass
class FaultInjector:
    """Fault injector. It injects faults one by one, with new jobs between them, and repairs each.
    The bank is unavailable for at most `away_seconds`, and once for `long_seconds`.
    """

    stack: BankStack
    postgres: PostgresServer
    disk: Path
    proxies: tuple[FaultyProxy, FaultyProxy]
    load: Load
    rng: random.Random
    away_seconds: float
    long_seconds: float
    done: Counter[str] = field(default_factory=Counter)
    without_controller: Periods = field(default_factory=Periods)
    without_bank: Periods = field(default_factory=Periods)
    unsaved: list[tuple[float, float]] = field(default_factory=list)
    """Periods that slurmctld had not saved when it was killed."""
    resets: list[tuple[float, float]] = field(default_factory=list)
    _message_faults: Iterator[MessageFault] = field(
        default_factory=lambda: itertools.cycle(MESSAGE_FAULTS)
    )

    def inject(self, times: int, resets: int) -> None:
        """Inject `times` faults in random order, each kind about equally often."""
        kinds: list[tuple[str, Fault]] = [
            ("agent killed", self._kill_agent),
            ("bank killed", self._kill_bank),
            ("PostgreSQL killed", self._kill_postgres),
            ("slurmctld killed", self._kill_controller),
            ("slurmdbd killed", self._kill_accounting),
            ("bank stopped", self._bank_stopped),
            ("bank frozen", self._bank_frozen),
            ("outbox disk full", self._disk_full),
            (
                "messages of the plug-in in disorder",
                lambda: self._disorder_messages(self.proxies[0], 20),
            ),
            (
                "messages to the bank in disorder",
                lambda: self._disorder_messages(self.proxies[1], 6),
            ),
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
        self.stack.agent.kill()
        self.stack.agent.start()

    def _kill_bank(self) -> None:
        with self.without_bank.record():
            self.stack.bank.kill()
            begin(self.stack.bank)

    def _kill_postgres(self) -> None:
        with self.without_bank.record():
            self.postgres.kill()
            self.load.wait_for_more(1)
            self.postgres.start()
            begin(self.stack.bank)

    def _kill_controller(self) -> None:
        with self.without_controller.record():
            self.stack.slurm.kill(SLURMCTLD)
            self.unsaved.append((self.stack.slurm.saved_at(), time.time()))
            self.stack.slurm.start(SLURMCTLD)
            self._wait_for_controller()

    def _kill_accounting(self) -> None:
        self.stack.slurm.kill(SLURMDBD)
        self.load.wait_for_more(3)
        self.stack.slurm.start(SLURMDBD)

    def _bank_stopped(self) -> None:
        """Stop the bank; the first time for long."""
        self._without_bank_for(
            self._random_pause() if self.done["bank stopped"] else self.long_seconds
        )

    def _without_bank_for(self, seconds: float) -> None:
        with self.without_bank.record():
            self.stack.bank.kill()
            _wait(seconds)
            begin(self.stack.bank)

    def _bank_frozen(self) -> None:
        """Suspend the bank: it accepts connections and does not answer."""
        with self.without_bank.record():
            os.kill(self.stack.bank.pid, signal.SIGSTOP)
            try:
                _wait(self._random_pause())
            finally:
                os.kill(self.stack.bank.pid, signal.SIGCONT)

    def _disk_full(self) -> None:
        """Fill the outbox's disk, with the bank available or not."""
        filler = fill(self.disk)
        try:
            if self.rng.random() < 0.5:
                self.load.wait_for_more(10)
            else:
                self._without_bank_for(self._random_pause())
        finally:
            filler.unlink()

    def _disorder_messages(self, proxy: FaultyProxy, messages: int) -> None:
        """Apply the next message fault until it has affected some messages."""
        fault = next(self._message_faults)
        target = proxy.done[fault.value] + messages
        proxy.fault = fault
        try:
            wait_until(
                lambda: proxy.done[fault.value] >= target,
                f"{messages} messages to be {fault.value}",
                seconds=TIMEOUT_SECONDS,
            )
        finally:
            proxy.fault = MessageFault.NONE

    def _reset(self) -> None:
        """Make slurmctld lose all jobs and begin its numbers at 1 again."""
        with self.without_controller.record(), self.load.paused():
            begun = time.time()
            self.stack.slurm.empty(first_job=1)
            self.resets.append((begun, time.time()))
            self.unsaved.append(self.resets[-1])

    def _random_pause(self) -> float:
        return self.rng.uniform(0.3, 1) * self.away_seconds

    def _wait_for_controller(self) -> None:
        wait_until(
            lambda: self.stack.slurm.run("root", "scontrol", "ping").code == 0,
            "slurmctld to answer",
            seconds=TIMEOUT_SECONDS,
        )


def _wait(seconds: float) -> None:
    until = time.monotonic() + seconds
    wait_until(
        lambda: time.monotonic() > until, "the while to be over", seconds=seconds + TIMEOUT_SECONDS
    )
