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


def note_requests(*texts: str) -> list[SubmittedRequest]:
    return [SubmittedRequest(AuditNote(details=text), Instant(1_000), 0) for text in texts]


def count_entries(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()


class GatedLedger(Ledger):
    """Ledger that applies batches only after the gate opens. `batches` are the texts of each batch.
    A batch with BAD in it fails with `failure`.
    """

    def __init__(self, store: Store, retry_policy: RetryPolicy) -> None:
        super().__init__(store, Policy(), retry_policy)
        self.gate = threading.Event()
        self.batches: list[list[str]] = []
        self.failure: Exception = FairbankError("this request breaks the bank")
        self.before_failure: Callable[[], None] = lambda: None

    def apply(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline | None = None
    ) -> list[Outcome]:
        texts = [
            str(entry.request.details) for entry in batch if isinstance(entry.request, AuditNote)
        ]
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
        self, capacity: int = 5_000, store: Store | None = None, *, separate_process: bool = False
    ) -> None:
        self.now = 0.0
        self.bank = GatedLedger(store or MemoryStore(), RetryPolicy(30, lambda: self.now))
        self.in_process = separate_process
        self.queue, self.writers = (
            connected_queue(self.bank, capacity)
            if separate_process
            else _local_queue(self.bank, capacity)
        )
        self.results: dict[str, BatchResult] = {}
        self.observed: list[int] = []
        self.queue.observer = lambda outcomes: self.observed.append(len(outcomes))
        self._submitted = 0

    def submit(self, *texts: str) -> None:
        self.queue.submit(
            note_requests(*texts), lambda result: self.results.__setitem__(texts[0], result)
        )
        self._submitted += len(texts)

    def submit_first(self) -> None:
        """Submit `first` and wait until the ledger works on it; whatever is submitted next has to
        wait.
        """
        self.submit("first")
        wait_until(lambda: self.bank.batches, "the ledger to apply a batch")

    def wait_until_queued(self) -> None:
        """Wait until all submitted batches have reached the writers."""
        taken = sum(map(len, self.bank.batches))
        wait_until(
            lambda: self.writers.waiting + taken >= self._submitted,
            "all submitted batches to arrive",
        )

    def finish(self) -> None:
        if not self.bank.gate.is_set():
            self.wait_until_queued()
        self.bank.gate.set()
        self.queue.close()

    def granted(self) -> set[str]:
        return {name for name, result in self.results.items() if isinstance(result, list)}


def _local_queue(bank: Ledger, capacity: int) -> tuple[WriteQueue, WriterThreads]:
    writers = WriterThreads(bank, waiting_max=capacity)
    return writers, writers


def connected_queue(bank: Ledger, capacity: int = 10_000) -> tuple[WriteQueue, WriterThreads]:
    """Return a queue whose writers read the other end of a socket, in a thread."""
    server_end, worker_end = socket.socketpair()
    writers = ConnectionWriters(worker_end, bank, read_frames(worker_end), lambda: None)

    def serve() -> None:
        with worker_end:
            writers.serve_until_end()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def ended() -> int:
        thread.join()
        return 0

    return ProcessWriteQueue(bank, server_end, ended, waiting_max=capacity), writers
