"""Responses when the write queue is full, the store is unreachable, or a handler fails."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.requests import AuditNote, SubmittedRequest
from fairbank.core.errors import Unavailable
from fairbank.core.time import Instant, iso
from fairbank.rest.async_write_queue import AsyncWriteQueue
from fairbank.service.ledger import Ledger
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.memory.store import MemoryStore
from tests.rest.server.slow_store import SlowStore, closed
from tests.rest.world import AGENT, DAY, MEMBER, NOW, SUPERUSER, create_world, report
from tests.support.conditions import wait_until


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


def test_full_write_queue_answers_503_with_retry_after(store: SlowStore) -> None:
    with create_world(store, waiting_max=2) as world, ThreadPoolExecutor(2) as others:
        with closed(store):
            first = others.submit(world.ask, "POST", "/job", AGENT, json=report(1))
            wait_until(
                lambda: (
                    world.context.metrics.registry.get_sample_value("fairbank_requests_in_progress")
                    == 1
                ),
                "the first to be let in",
            )
            wait_until(
                lambda: world.context.services.write_queue.waiting == 0, "the first to be taken up"
            )
            second = others.submit(
                world.ask, "POST", "/job/bulk", AGENT, json={"reports": [report(2), report(3)]}
            )
            wait_until(
                lambda: world.context.services.write_queue.waiting == 2, "the second to wait"
            )
            third = world.ask("POST", "/job", AGENT, json=report(4))
        assert (third.status_code, third.headers["retry-after"]) == (503, "1")
        assert third.json()["remedy"] == "try again in 1 s; the request was not carried out"
        assert first.result().status_code == 201
        assert [row["status"] for row in second.result().json()["data"]] == [201, 201]
        assert world.ask("GET", "/job?job_id=4", SUPERUSER).json()["data"] == []
        assert world.ask("POST", "/job", AGENT, json=report(4)).status_code == 201


def test_reads_and_health_continue_while_writes_wait(store: SlowStore) -> None:
    with create_world(store) as world, ThreadPoolExecutor(1) as others:
        with closed(store):
            held = others.submit(world.ask, "POST", "/job", AGENT, json=report(1))
            wait_until(lambda: store.waiting, "the write to wait")
            assert world.ask("GET", "/health").status_code == 200
            assert world.ask("GET", "/alloc", MEMBER).status_code == 200
        assert held.result().status_code == 201


def test_unreachable_store_is_a_503(store: SlowStore) -> None:
    with create_world(store) as world:
        store.reading_breaks = Unavailable("the database does not answer", remedy="try again")
        answer = world.ask("GET", "/alloc", SUPERUSER)
        assert (answer.status_code, answer.headers["retry-after"], answer.json()["title"]) == (
            503,
            "5",
            "unavailable",
        )
        assert world.ask("GET", "/health").status_code == 200


def test_refusal_does_not_wait_for_remedies(store: SlowStore) -> None:
    """The decision is final: a repeated report would be refused again."""
    early = {"start": NOW - 100 * DAY, "submitted": NOW - 100 * DAY}
    with create_world(store) as world:
        store.reading_breaks = Unavailable("the database does not answer", remedy="try again")
        alone = world.ask("POST", "/job", AGENT, json=report(1, **early))
        (row,) = world.ask(
            "POST", "/job/bulk", AGENT, json={"reports": [report(2, **early)]}
        ).json()["data"]
    assert (alone.status_code, row["status"]) == (402, 402)
    assert alone.json()["detail"] == row["detail"]
    assert row["detail"].endswith(f"the start of the job is {iso(NOW - 100 * DAY)}.")


def test_failure_has_a_number_that_the_log_explains(
    store: SlowStore, caplog: pytest.LogCaptureFixture
) -> None:
    with create_world(store) as world:
        store.reading_breaks = ZeroDivisionError("secret: /etc/fairbank/key")
        answer = world.ask("GET", "/alloc", SUPERUSER)
        store.reading_breaks = None
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "ZeroDivision" not in answer.text
    number = answer.json()["detail"].rpartition(" ")[2]
    record = next(entry for entry in caplog.records if number in entry.getMessage())
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


# --- write queue ---


def _note(text: str) -> SubmittedRequest:
    return SubmittedRequest(AuditNote(details=text), Instant(NOW), 0)


def test_each_caller_gets_its_own_outcomes() -> None:
    threads = WriterThreads(Ledger(MemoryStore(), Policy()))

    async def apply_many() -> list[int]:
        queue = AsyncWriteQueue(threads, asyncio.get_running_loop())
        answers = await asyncio.gather(
            *(queue.apply([_note(str(number))] * (number % 3)) for number in range(300))
        )
        return [len(answer) for answer in answers]

    assert asyncio.run(apply_many()) == [number % 3 for number in range(300)]
    threads.close()


def test_cancelled_caller_does_not_cancel_the_request() -> None:
    store = SlowStore()
    threads = WriterThreads(Ledger(store, Policy()))

    async def cancel_first() -> None:
        queue = AsyncWriteQueue(threads, asyncio.get_running_loop())
        with closed(store):
            task = asyncio.create_task(queue.apply([_note("kept")]))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert len(await queue.apply([_note("another")])) == 1

    asyncio.run(cancel_first())
    threads.close()
    with store.reading() as reader:
        assert reader.count_entries() == 2


def test_write_queue_error_reaches_the_caller() -> None:
    threads = WriterThreads(Ledger(MemoryStore(), Policy()))
    threads.close()

    async def ask() -> None:
        await AsyncWriteQueue(threads, asyncio.get_running_loop()).apply([_note("too late")])

    with pytest.raises(Exception, match="the server is stopping"):
        asyncio.run(ask())


def test_failing_callback_does_not_stop_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    threads = WriterThreads(Ledger(MemoryStore(), Policy()))

    def fail(_: object) -> None:
        raise RuntimeError("the event loop is closed")

    threads.submit([_note("one")], fail)
    assert len(threads.apply([_note("two")])) == 1
    threads.close()
    assert "the result of a batch could not be delivered" in caplog.text
