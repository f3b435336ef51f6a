"""Write queue: batches that wait together share a transaction; a full queue refuses more."""

from __future__ import annotations

import threading

import pytest

from fairbank.core.errors import Busy
from fairbank.service.ledger import BATCH_MAX
from fairbank.service.write_queue.writers import NEXT_BATCH_MIN
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import QueueScene, count_entries
from tests.support.conditions import wait_until


def test_what_gathers_is_judged_in_one_batch(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("a", "b")
    scene.submit("c")
    scene.finish()
    assert scene.bank.batches == [["first"], ["a", "b", "c"]]
    assert [len(scene.results[name]) for name in ("first", "a", "c")] == [1, 2, 1]  # type: ignore[arg-type]
    assert scene.observed == [1, 3]


def test_a_batch_is_no_longer_than_one_transaction_takes(scene: QueueScene) -> None:
    scene.submit_first()
    for name in "abc":
        scene.submit(*[name] * (BATCH_MAX // 2))
    scene.finish()
    assert [len(each) for each in scene.bank.batches] == [1, BATCH_MAX, BATCH_MAX // 2]


class TwoWriterStore(MemoryStore):
    """Store with two writers."""

    writers = 2


def test_where_two_write_the_second_begins_while_the_first_is_at_work_but_only_with_enough(
    apart: bool,
) -> None:
    scene = QueueScene(store=TwoWriterStore(), apart=apart)
    scene.submit_first()
    scene.submit(*["few"] * (NEXT_BATCH_MIN - 1))
    wait_until(lambda: len(scene.writers._changed._waiters) == 1, "the other window to be idle")  # type: ignore[attr-defined]
    scene.wait_until_queued()
    assert len(scene.bank.batches) == 1
    scene.submit("one more")
    wait_until(lambda: len(scene.bank.batches) == 2, "the other window to begin")
    scene.submit("later")
    wait_until(lambda: scene.writers.waiting == 1, "it to wait")
    scene.finish()
    assert [len(each) for each in scene.bank.batches] == [1, NEXT_BATCH_MIN, 1]
    assert scene.granted() == {"first", "few", "one more", "later"}
    assert count_entries(scene.bank.store) == NEXT_BATCH_MIN + 2


def test_two_windows_answer_what_waits_and_close(apart: bool) -> None:
    scene = QueueScene(store=TwoWriterStore(), apart=apart)
    scene.submit_first()
    scene.queue.submit([], lambda came: scene.results.__setitem__("nothing", came))
    scene.submit("a")
    scene.finish()
    assert scene.granted() == {"first", "nothing", "a"}
    assert not any(each.is_alive() for each in scene.writers._threads)


def test_queue_limit_lets_one_longer_batch_in_when_empty(apart: bool) -> None:
    scene = QueueScene(room=500, apart=apart)
    scene.submit(*["long"] * 600)
    wait_until(lambda: scene.bank.batches, "the bank to be asked")
    # from a process of their own nobody tells what is begun: there it counts until it is answered
    if not apart:
        scene.submit(*["longer"] * 600)
    assert scene.queue.waiting == 600
    with pytest.raises(Busy, match="600 requests are waiting already"):
        scene.submit("one more")
    scene.finish()
    assert scene.granted() == ({"long"} if apart else {"long", "longer"})
    assert scene.queue.waiting == 0


def test_what_one_transaction_does_not_take_is_not_taken_at_all(scene: QueueScene) -> None:
    """A longer batch would be applied in parts, and Busy would no longer mean "not applied"."""
    with pytest.raises(ValueError, match="1001 requests do not fit into one transaction"):
        scene.submit(*["long"] * (BATCH_MAX + 1))
    scene.finish()
    assert count_entries(scene.bank.store) == 0


def test_closing_answers_what_waits_and_takes_nothing_more(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("a")
    closing = threading.Thread(target=scene.queue.close)
    closing.start()
    wait_until(lambda: scene.queue._closed, "the counter to close")  # type: ignore[attr-defined]
    with pytest.raises(Busy, match="the server is stopping"):
        scene.submit("b")
    scene.bank.gate.set()
    closing.join()
    assert scene.granted() == {"first", "a"}
