"""Write queue in front of a ledger that waits at a gate."""

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

BAD = "poison"


def notes(*texts: str) -> list[SubmittedRequest]:
    return [SubmittedRequest(AuditNote(details=each), Instant(1_000), 0) for each in texts]


def count_entries(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()


class GatedLedger(Ledger):
    """Ledger that applies batches only after the gate opens. `batches` are the texts of each batch.
    A batch with BAD in it fails with `failure`.
    """

    def __init__(self, store: Store, patience: RetryPolicy) -> None:
        super().__init__(store, Policy(), patience)
        self.gate = threading.Event()
        self.batches: list[list[str]] = []
        self.failure: Exception = FairbankError("this request breaks the bank")
        self.before_failure: Callable[[], None] = lambda: None

    def apply(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline | None = None
    ) -> list[Outcome]:
        texts = [str(each.request.details) for each in batch if isinstance(each.request, AuditNote)]
        self.batches.append(texts)
        assert self.gate.wait(30)
        if BAD in texts:
            self.before_failure()
            raise self.failure
        return super().apply(batch, deadline)


class QueueScene:
    """Write queue in front of a gated ledger, with a clock that stands still. `results` holds the
    result of each batch by its first text. `in_process`: the writers are at the other end of a
    socket, as in a separate process, but in this process, so that the test can see them.
    """

    def __init__(
        self, room: int = 5_000, store: Store | None = None, *, apart: bool = False
    ) -> None:
        self.now = 0.0
        self.bank = GatedLedger(store or MemoryStore(), RetryPolicy(30, lambda: self.now))
        self.in_process = apart
        self.queue, self.writers = (
            connected_queue(self.bank, room) if apart else _local_queue(self.bank, room)
        )
        self.results: dict[str, BatchResult] = {}
        self.observed: list[int] = []
        self.queue.observer = lambda outcomes: self.observed.append(len(outcomes))
        self._submitted = 0

    def submit(self, *texts: str) -> None:
        self.queue.submit(notes(*texts), lambda came: self.results.__setitem__(texts[0], came))
        self._submitted += len(texts)

    def submit_first(self) -> None:
        """Submit `first` and wait until the ledger works on it; whatever is submitted next has to
        wait.
        """
        self.submit("first")
        wait_until(lambda: self.bank.batches, "the bank to be asked")

    def wait_until_queued(self) -> None:
        """Wait until all submitted batches have reached the writers."""
        taken = sum(map(len, self.bank.batches))
        wait_until(
            lambda: self.writers.waiting + taken >= self._submitted,
            "all that was handed in to arrive",
        )

    def finish(self) -> None:
        if not self.bank.gate.is_set():
            self.wait_until_queued()
        self.bank.gate.set()
        self.queue.close()

    def granted(self) -> set[str]:
        return {name for name, came in self.results.items() if isinstance(came, list)}


def _local_queue(bank: Ledger, room: int) -> tuple[WriteQueue, WriterThreads]:
    windows = WriterThreads(bank, waiting_max=room)
    return windows, windows


def connected_queue(bank: Ledger, room: int = 10_000) -> tuple[WriteQueue, WriterThreads]:
    """Return a queue whose writers read the other end of a socket, in a thread."""
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

    return ProcessWriteQueue(bank, line, ended, waiting_max=room), judging
