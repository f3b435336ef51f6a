"""Errors of the write queue: a bad batch fails alone, and an expired one is not applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.errors import Busy, FairbankError, Unavailable
from fairbank.service.ledger import Ledger, RetryPolicy
from fairbank.service.write_queue.queue import BatchResult
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.migration import migrate
from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.store import SqliteStore
from tests.service.gated_bank import BAD, QueueScene, connected_queue, count_entries, note_requests
from tests.support.conditions import wait_until


def is_same_error(result: object, error: Exception) -> bool:
    """Return True for equal errors: over a socket an error arrives as a copy."""
    return type(result) is type(error) and str(result) == str(error)


def test_bad_batch_fails_alone_and_applied_batches_are_observed(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("a", "b")
    scene.submit(BAD)
    scene.submit("c")
    scene.finish()
    assert scene.granted() == {"first", "a", "c"}
    assert is_same_error(scene.results[BAD], scene.bank.failure)
    assert scene.observed == [1, 2, 1]


@pytest.mark.parametrize("others", [0, 2])
def test_unavailable_bank_is_not_retried(scene: QueueScene, others: int) -> None:
    scene.bank.failure = Unavailable("nobody is there")
    scene.submit_first()
    scene.submit(BAD)
    for number in range(others):
        scene.submit(str(number))
    scene.finish()
    assert len(scene.bank.batches) == 2
    assert {
        name for name, result in scene.results.items() if is_same_error(result, scene.bank.failure)
    } == {BAD, *map(str, range(others))}


def test_lost_connection_fails_the_remaining_requests(scene: QueueScene) -> None:
    def lose_connection() -> None:
        scene.bank.failure = (
            Unavailable("nobody is there") if len(scene.bank.batches) > 2 else scene.bank.failure
        )

    scene.bank.before_failure = lose_connection
    scene.submit_first()
    scene.submit("a")
    scene.submit(BAD)
    scene.submit("b")
    scene.finish()
    assert scene.granted() == {"first", "a"}
    assert is_same_error(scene.results[BAD], scene.bank.failure)
    assert isinstance(scene.results["b"], Unavailable)
    assert "this was not carried out" in scene.results["b"].message


def test_expired_batch_is_not_retried_request_by_request(scene: QueueScene) -> None:
    def expire() -> None:
        scene.now += 30

    scene.bank.before_failure = expire
    scene.submit_first()
    scene.submit("a")
    scene.submit(BAD)
    scene.finish()
    assert len(scene.bank.batches) == 2
    assert isinstance(scene.results["a"], Busy)
    assert count_entries(scene.bank.store) == 1


def test_request_past_its_deadline_is_refused_and_not_applied(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("early")
    scene.now += 20
    scene.submit("later")
    scene.now += 10
    scene.finish()
    assert scene.bank.batches == [["first"], ["later"]]
    early = scene.results["early"]
    assert isinstance(early, FairbankError)
    assert "the request was not carried out" in str(early.remedy)
    assert count_entries(scene.bank.store) == 2


def test_failing_callbacks_do_not_block_other_answers(
    scene: QueueScene, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("the event loop is closed")

    scene.submit_first()
    scene.queue.observer = fail
    scene.queue.submit(note_requests("lost"), fail)
    scene.submit("a")
    scene.finish()
    assert scene.granted() == {"first", "a"}
    assert "the result of a batch could not be delivered" in caplog.text
    assert "the observer of the write queue failed" in caplog.text


def test_foreign_lock_delays_all_by_one_timeout_and_nothing_is_applied_later(
    tmp_path: Path, separate_process: bool
) -> None:
    """Another program locks the file. Fifty batches must not wait for it one after the other."""
    path = tmp_path / "fairbank.sqlite"
    migrate(f"sqlite:///{path}")
    store = SqliteStore(path, timeout_seconds=0.02)
    bank = Ledger(store, Policy(), RetryPolicy(0.3))
    queue = connected_queue(bank)[0] if separate_process else WriterThreads(bank)
    output: list[BatchResult] = []
    lock = driver.connect(str(path), isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    for number in range(50):
        queue.submit(note_requests(str(number)), output.append)
    wait_until(lambda: len(output) == 50, "all results to arrive", seconds=5)
    assert all(isinstance(result, Busy) for result in output)
    lock.execute("ROLLBACK")
    assert len(queue.apply(note_requests("now"))) == 1
    queue.close()
    assert count_entries(store) == 1
    lock.close()
    store.close()
