"""Writers in a separate process: an idle thread reads the socket and applies what it reads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence

import pytest

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.service.ledger import Deadline, RetryPolicy
from fairbank.service.write_queue.child import ConnectionWriters, ServerDied, read_frames
from fairbank.service.write_queue.protocol import RequestBatch, frame
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import GatedLedger, count_entries, notes
from tests.support.conditions import wait_until


class Seen(GatedLedger):
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
def bank() -> Seen:
    return Seen()


@pytest.fixture
def line() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return both ends of a socket: the server's and the writer process's."""
    ends = socket.socketpair()
    yield ends
    for each in ends:
        each.close()


def say(server: socket.socket, *texts: str) -> None:
    server.sendall(frame([RequestBatch(0, 1.0, notes(*texts))]))


def unheard() -> None:
    raise AssertionError("the server is there")


def test_single_request_is_applied_by_its_reader(
    bank: Seen, line: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = line
    heard: list[int] = []

    def hearing() -> Iterator[bytes]:
        for body in read_frames(ours):
            heard.append(threading.get_ident())
            yield body

    bank.gate.set()
    judging = ConnectionWriters(ours, bank, hearing(), unheard)

    def come_alone(number: int) -> None:
        say(server, str(number))
        wait_until(
            lambda: count_entries(bank.store) == number and not judging._busy,
            "it to be judged and all to be idle",
        )

    for number in range(1, 20):
        come_alone(number)
    server.sendall(frame([]))
    judging.serve_until_end()
    assert bank.threads == heard[:-1]


def test_what_comes_while_all_are_at_work_is_judged_before_the_orderly_end(
    bank: Seen, line: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = line
    judging = ConnectionWriters(ours, bank, read_frames(ours), unheard)
    say(server, "first")
    wait_until(lambda: bank.batches, "the bank to be asked")
    say(server, "a")
    say(server, "b")
    server.sendall(frame([]))
    wait_until(lambda: judging._closed, "the end to be heard")
    bank.gate.set()
    judging.serve_until_end()
    assert bank.batches == [["first"], ["a", "b"]]


def test_that_the_server_is_gone_is_noticed_while_all_are_at_work(
    bank: Seen, line: tuple[socket.socket, socket.socket]
) -> None:
    server, ours = line
    gone = threading.Event()
    judging = ConnectionWriters(ours, bank, read_frames(ours), gone.set)
    say(server, "first")
    wait_until(lambda: bank.batches, "the bank to be asked")
    server.close()
    assert gone.wait(30)
    with pytest.raises(ServerDied):
        judging.serve_until_end()
    assert count_entries(bank.store) == 0
    bank.gate.set()
    judging.close()
