"""A counter in front of a bank behind a gate."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence

from fairbank.bank.policy import Policy
from fairbank.bank.requests import AuditNote, SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import FairbankError
from fairbank.core.time import Instant
from fairbank.service.ledger import Deadline, Ledger, RetryPolicy
from fairbank.service.write_queue.child import ConnectionWriters, read_frames
from fairbank.service.write_queue.process import ProcessWriteQueue
from fairbank.service.write_queue.queue import BatchResult, WriteQueue
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.support.conditions import wait_until

POISON = "poison"


def notes(*texts: str) -> list[SubmittedRequest]:
    return [SubmittedRequest(AuditNote(details=each), Instant(1_000), 0) for each in texts]


def kept(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()


class Gated(Ledger):
    """A bank behind a gate, that remembers what it was asked for. A batch with poison in it fails
    with `failure`.
    """

    def __init__(self, store: Store, patience: RetryPolicy) -> None:
        super().__init__(store, Policy(), patience)
        self.gate = threading.Event()
        self.asked: list[list[str]] = []
        self.failure: Exception = FairbankError("this request breaks the bank")
        self.before_failing: Callable[[], None] = lambda: None

    def apply(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline | None = None
    ) -> list[Outcome]:
        texts = [str(each.request.details) for each in batch if isinstance(each.request, AuditNote)]
        self.asked.append(texts)
        assert self.gate.wait(30)
        if POISON in texts:
            self.before_failing()
            raise self.failure
        return super().apply(batch, deadline)


class Scene:
    """A counter in front of a gated bank, a clock that stands, and what everybody was told.
    `apart`: its windows are at the other end of a line, as in a process of their own, but in this
    one, so that the bank can be held and looked at.
    """

    def __init__(
        self, room: int = 5_000, store: Store | None = None, *, apart: bool = False
    ) -> None:
        self.now = 0.0
        self.bank = Gated(store or MemoryStore(), RetryPolicy(30, lambda: self.now))
        self.apart = apart
        self.counter, self.windows = beside(self.bank, room) if apart else _here(self.bank, room)
        self.told: dict[str, BatchResult] = {}
        self.watched: list[int] = []
        self.counter.observer = lambda outcomes: self.watched.append(len(outcomes))
        self._handed_in = 0

    def submit(self, *texts: str) -> None:
        self.counter.submit(notes(*texts), lambda came: self.told.__setitem__(texts[0], came))
        self._handed_in += len(texts)

    def occupy(self) -> None:
        """The bank is busy with `first`; whatever is submitted now gathers."""
        self.submit("first")
        wait_until(lambda: self.bank.asked, "the bank to be asked")

    def gathered(self) -> None:
        """Wait until all that was handed in is at the windows."""
        taken = sum(map(len, self.bank.asked))
        wait_until(
            lambda: self.windows.waiting + taken >= self._handed_in,
            "all that was handed in to arrive",
        )

    def finish(self) -> None:
        if not self.bank.gate.is_set():
            self.gathered()
        self.bank.gate.set()
        self.counter.close()

    def served(self) -> set[str]:
        return {name for name, came in self.told.items() if isinstance(came, list)}


def _here(bank: Ledger, room: int) -> tuple[WriteQueue, WriterThreads]:
    windows = WriterThreads(bank, capacity=room)
    return windows, windows


def beside(bank: Ledger, room: int = 10_000) -> tuple[WriteQueue, WriterThreads]:
    """A counter whose windows are at the other end of a line, in a thread."""
    line, theirs = socket.socketpair()
    judging = ConnectionWriters(theirs, bank, read_frames(theirs), lambda: None)

    def judge() -> None:
        with theirs:
            judging.serve_until_end()

    thread = threading.Thread(target=judge, daemon=True)
    thread.start()

    def ended() -> int:
        thread.join()
        return 0

    return ProcessWriteQueue(bank, line, ended, capacity=room), judging
