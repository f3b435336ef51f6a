"""Errors of the write queue: a bad batch fails alone, and an expired one is not applied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.core.errors import Busy, Unavailable
from fairbank.service.ledger import Ledger, RetryPolicy
from fairbank.service.write_queue.queue import BatchResult
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.migration import migrate
from fairbank.store.sqlite.driver import driver
from fairbank.store.sqlite.store import SqliteStore
from tests.service.gated_bank import BAD, QueueScene, connected_queue, count_entries, notes
from tests.support.conditions import wait_until


def same(came: object, error: Exception) -> bool:
    """Return True for equal errors: over a socket an error arrives as a copy."""
    return type(came) is type(error) and str(came) == str(error)


def test_one_bad_submission_does_not_spoil_the_others_and_all_that_is_judged_is_watched(
    scene: QueueScene,
) -> None:
    scene.submit_first()
    scene.submit("a", "b")
    scene.submit(BAD)
    scene.submit("c")
    scene.finish()
    assert scene.granted() == {"first", "a", "c"}
    assert same(scene.results[BAD], scene.bank.failure)
    assert scene.observed == [1, 2, 1]


@pytest.mark.parametrize("others", [0, 2])
def test_silent_bank_is_not_asked_again(scene: QueueScene, others: int) -> None:
    scene.bank.failure = Unavailable("nobody is there")
    scene.submit_first()
    scene.submit(BAD)
    for each in range(others):
        scene.submit(str(each))
    scene.finish()
    assert len(scene.bank.batches) == 2
    assert {name for name, came in scene.results.items() if same(came, scene.bank.failure)} == {
        BAD,
        *map(str, range(others)),
    }


def test_lost_connection_fails_the_remaining_requests(scene: QueueScene) -> None:
    def lose() -> None:
        scene.bank.failure = (
            Unavailable("nobody is there") if len(scene.bank.batches) > 2 else scene.bank.failure
        )

    scene.bank.before_failure = lose
    scene.submit_first()
    scene.submit("a")
    scene.submit(BAD)
    scene.submit("b")
    scene.finish()
    assert scene.granted() == {"first", "a"}
    assert same(scene.results[BAD], scene.bank.failure)
    assert isinstance(scene.results["b"], Unavailable)
    assert "this was not carried out" in scene.results["b"].message


def test_expired_batch_is_not_retried_request_by_request(scene: QueueScene) -> None:
    def late() -> None:
        scene.now += 30

    scene.bank.before_failure = late
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
    assert "the request was not carried out" in str(scene.results["early"].remedy)  # type: ignore[union-attr]
    assert count_entries(scene.bank.store) == 2


def test_failing_callbacks_do_not_block_other_answers(
    scene: QueueScene, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(_: Any) -> None:
        raise RuntimeError("the event loop is closed")

    scene.submit_first()
    scene.queue.observer = gone
    scene.queue.submit(notes("lost"), gone)
    scene.submit("a")
    scene.finish()
    assert scene.granted() == {"first", "a"}
    assert "the result of a batch could not be delivered" in caplog.text
    assert "the observer of the write queue failed" in caplog.text


def test_foreign_lock_delays_all_by_one_timeout_and_nothing_is_applied_later(
    tmp_path: Path, apart: bool
) -> None:
    """Another program locks the file. Fifty batches must not wait for it one after the other."""
    path = tmp_path / "books.sqlite"
    migrate(f"sqlite:///{path}")
    store = SqliteStore(path, patience_seconds=0.02)
    bank = Ledger(store, Policy(), RetryPolicy(0.3))
    counter = connected_queue(bank)[0] if apart else WriterThreads(bank)
    output: list[BatchResult] = []
    other = driver.connect(str(path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for each in range(50):
        counter.submit(notes(str(each)), output.append)
    wait_until(lambda: len(output) == 50, "everybody to be told", seconds=5)
    assert all(isinstance(each, Busy) for each in output)
    other.execute("ROLLBACK")
    assert len(counter.apply(notes("now"))) == 1
    counter.close()
    assert count_entries(store) == 1
    other.close()
    store.close()
