"""The write queue in its own process: its start, and the end of either process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.errors import Busy, InvalidInput, NotFound, Unavailable
from fairbank.rest.client import Client, parse_address
from fairbank.service.ledger import Ledger
from fairbank.service.settings import LogFormat, StoreSettings
from fairbank.service.write_queue.process import start_process
from fairbank.service.write_queue.protocol import WorkerSettings
from fairbank.service.write_queue.queue import BatchResult, WriteQueue
from fairbank.setup.write_queue_process import start_write_queue
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.migration import migrate
from tests.service.gated_bank import count_entries, note_requests
from tests.support.conditions import wait_until
from tests.support.postgres import PostgresServer
from tests.support.server import FairbankServer, create_bank, run_bank
from tests.support.supervisor import children

pytestmark = pytest.mark.slow

IN_PROCESS = 'write_queue = "process"'


@pytest.fixture
def url(postgres18: PostgresServer) -> Iterator[str]:
    """Provide an empty database on PostgreSQL."""
    with postgres18.fresh_database() as name:
        migrate(postgres18.url(name))
        yield postgres18.url(name)


@pytest.fixture
def queue(url: str) -> Iterator[WriteQueue]:
    """Provide a write queue in a process."""
    store = open_store(url)
    queue = start_write_queue(
        StoreSettings(url), LogFormat.SHORT, Ledger(store, Policy()), waiting_max=5_000
    )
    yield queue
    queue.close()
    store.close()


@pytest.fixture
def server(postgres18: PostgresServer) -> Iterator[FairbankServer]:
    """Provide a bank on PostgreSQL whose write queue is a process."""
    with (
        postgres18.fresh_database() as name,
        run_bank(postgres18.url(name), server=IN_PROCESS) as server,
    ):
        yield server


def queue_processes(pid: int) -> list[int]:
    """Return the write queue processes that this process has started."""
    return [
        queue_process
        for queue_process in children(pid)
        if b"fairbank.setup.write_queue_process"
        in Path(f"/proc/{queue_process}/cmdline").read_bytes()
    ]


def queue_process(pid: int) -> int:
    (number,) = queue_processes(pid)
    return number


def has_ended(pid: int) -> bool:
    return (
        not Path(f"/proc/{pid}").exists()
        or "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    )


def ask(server: FairbankServer, gid: int) -> None:
    Client(parse_address(f"unix:{server.socket}")).post(
        "/project", {"gname": f"g{gid}", "gid": gid}
    )


def test_closing_answers_queued_requests(queue: WriteQueue) -> None:
    results: list[BatchResult] = []

    def submit_many(first: int) -> None:
        for number in range(first, first + 50):
            queue.submit(note_requests(str(number)), results.append)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit_many, range(0, 200, 50)))
    assert len(queue.apply(note_requests("one more", "and one"))) == 2
    queue.submit(note_requests("the last"), results.append)
    queue.close()
    assert len(results) == 201
    assert all(isinstance(result, list) for result in results)
    assert count_entries(queue.bank.store) == 203
    assert queue.failure is None
    with pytest.raises(Busy, match="the server is stopping"):
        queue.apply(note_requests("too late"))


def test_callers_get_an_error_when_the_process_dies(
    queue: WriteQueue, caplog: pytest.LogCaptureFixture
) -> None:
    process = queue_process(os.getpid())
    os.kill(process, signal.SIGSTOP)
    results: list[BatchResult] = []
    for number in range(3):
        queue.submit(note_requests(str(number)), results.append)
    assert queue.waiting == 3
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: len(results) == 3, "all callers to get a result")
    assert all(
        isinstance(result, Unavailable) and "not known" in result.message for result in results
    )
    wait_until(lambda: queue.failure, "the failure")
    assert "status -9" in str(queue.failure)
    assert (
        "the write queue process ended (status -9), and the server with it; 3 batches were in"
        " progress" in caplog.text
    )
    with pytest.raises(Busy, match="the server is stopping"):
        queue.apply(note_requests("after"))


def test_server_stops_when_its_write_queue_is_killed(server: FairbankServer) -> None:
    ask(server, 1)
    process = queue_process(server.pid)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: not server.running, "the server to end")
    assert "the write queue process ended (status -9), and the server with it" in server.tail()
    server.restart()
    assert queue_process(server.pid) != process
    ask(server, 2)


def test_killed_server_leaves_no_write_queue_process(server: FairbankServer) -> None:
    ask(server, 1)
    process = queue_process(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: has_ended(process), "the write queue process to end")
    assert "the server is gone, and its write queue ends" in server.tail()
    wait_until(lambda: not server.running, "the supervisor to end")
    server.restart()
    ask(server, 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_to_the_process_group_stops_both_in_order(
    server: FairbankServer, number: signal.Signals
) -> None:
    process = queue_process(server.pid)
    ask(server, 1)
    os.kill(process, number)
    ask(server, 2)
    os.kill(server.pid, number)
    wait_until(lambda: not server.running, "the server to end")
    assert has_ended(process)
    assert "write queue" not in server.tail()


def test_sqlite_has_its_write_queue_in_the_server() -> None:
    with run_bank(server=IN_PROCESS) as server:
        assert not children(server.pid)


def test_unknown_kind_of_write_queue_is_refused() -> None:
    with create_bank(server='write_queue = "cellar"') as server:
        done = server.command("serve")
    assert done.returncode == 2
    assert "field: server.write_queue\n  try: one of: threads, process" in done.stderr


def test_process_that_cannot_open_the_store_reports_why(postgres18: PostgresServer) -> None:
    begin = partial(
        start_write_queue, log=LogFormat.SHORT, bank=Ledger(MemoryStore(), Policy()), waiting_max=1
    )
    with postgres18.fresh_database() as name, pytest.raises(NotFound) as empty:
        begin(StoreSettings(postgres18.url(name)))
    assert "fairbank init" in str(empty.value.remedy)
    with pytest.raises(Unavailable, match="the database does not answer"):
        begin(StoreSettings(postgres18.url("nowhere")))
    with pytest.raises(InvalidInput) as bad:
        begin(StoreSettings("nonsense"))
    assert bad.value.field == "store.url"
    assert not queue_processes(os.getpid())


def test_process_that_ends_silently_is_reported() -> None:
    with pytest.raises(Unavailable, match="the write queue process did not start"):
        start_process(
            (sys.executable, "-c", "raise SystemExit(3)"),
            WorkerSettings("memory:", "wal", Policy(), 1.0, "json"),
        )


def test_callers_get_results_while_the_event_loop_uses_the_queue(queue: WriteQueue) -> None:
    """The event loop takes over the connection of the queue and returns it while threads submit
    requests.
    """
    stop, answered = [False], []

    def submit_many() -> None:
        while not stop[0]:
            answered.append(len(queue.apply(note_requests("x"))))

    async def use_in_event_loop() -> None:
        for _ in range(20):
            with queue.in_loop(asyncio.get_running_loop()):
                before = len(answered)
                while len(answered) < before + 2:
                    await asyncio.sleep(0)

    threads = [Thread(target=submit_many) for _ in range(2)]
    for thread in threads:
        thread.start()
    asyncio.run(use_in_event_loop())
    stop[0] = True
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert count_entries(queue.bank.store) == len(answered)
