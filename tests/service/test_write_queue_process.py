"""Writers in a separate process: an idle thread reads the socket and applies what it reads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from operator import eq

import pytest

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.service.ledger import Deadline, RetryPolicy
from fairbank.service.write_queue.child import ConnectionWriters, ServerDied, read_frames
from fairbank.service.write_queue.protocol import READ_MAX, RequestBatch, frame
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import GatedLedger, count_entries, note_requests
from tests.support.conditions import wait_until


class ThreadRecordingLedger(GatedLedger):
    """Ledger that records its threads."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), RetryPolicy(30, lambda: 0.0))
        self.threads: list[int] = []

    def apply(
        self, batch: Sequence[SubmittedRequest], deadline: Deadline | None = None
    ) -> list[Outcome]:
        self.threads.append(threading.get_ident())
        return super().apply(batch, deadline)


@pytest.fixture
def bank() -> ThreadRecordingLedger:
    return ThreadRecordingLedger()


@pytest.fixture
def socket_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return both ends of a socket: the server's and the writer process's."""
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


def send_batch(server: socket.socket, *texts: str) -> None:
    server.sendall(frame([RequestBatch(0, 1.0, note_requests(*texts))]))


def recorded_frames(connection: socket.socket, readers: list[int]) -> Iterator[bytes]:
    """Yield the frames of a connection, and record the thread that has read each."""
    for body in read_frames(connection):
        readers.append(threading.get_ident())
        yield body


def unexpected_loss() -> None:
    raise AssertionError("the server is there")


def test_single_request_is_applied_by_its_reader(
    bank: ThreadRecordingLedger, socket_pair: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = socket_pair
    readers: list[int] = []
    bank.gate.set()
    writers = ConnectionWriters(ours, bank, recorded_frames(ours, readers), unexpected_loss)
    for number in range(1, 20):
        send_batch(server, str(number))
        assert server.recv(READ_MAX)
    server.sendall(frame([]))
    writers.serve_until_end()
    assert len(bank.threads) == 19
    # Not each: a thread that has replied may not be idle yet when the next request is read.
    assert any(map(eq, bank.threads, readers))


def test_queued_batches_are_applied_before_an_orderly_end(
    bank: ThreadRecordingLedger, socket_pair: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = socket_pair
    readers: list[int] = []
    writers = ConnectionWriters(ours, bank, recorded_frames(ours, readers), unexpected_loss)
    send_batch(server, "first")
    wait_until(lambda: bank.batches, "the ledger to apply a batch")
    send_batch(server, "a")
    send_batch(server, "b")
    server.sendall(frame([]))
    wait_until(lambda: len(readers) == 4, "the end frame to be read")
    bank.gate.set()
    writers.serve_until_end()
    assert bank.batches == [["first"], ["a", "b"]]


def test_lost_server_is_noticed_while_all_threads_are_busy(
    bank: ThreadRecordingLedger, socket_pair: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = socket_pair
    gone = threading.Event()
    writers = ConnectionWriters(ours, bank, read_frames(ours), gone.set)
    send_batch(server, "first")
    wait_until(lambda: bank.batches, "the ledger to apply a batch")
    server.close()
    assert gone.wait(30)
    with pytest.raises(ServerDied):
        writers.serve_until_end()
    assert count_entries(bank.store) == 0
    bank.gate.set()
    writers.close()
