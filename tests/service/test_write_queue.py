"""Write queue: batches that wait together share a transaction; a full queue refuses more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairbank.core.errors import Busy
from fairbank.service.ledger import BATCH_MAX
from fairbank.service.write_queue.queue import WriteQueue
from fairbank.service.write_queue.writers import NEXT_BATCH_MIN
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import QueueScene, count_entries
from tests.support.conditions import wait_until


def test_waiting_batches_share_a_transaction(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("a", "b")
    scene.submit("c")
    scene.finish()
    assert scene.bank.batches == [["first"], ["a", "b", "c"]]
    results = [scene.results[name] for name in ("first", "a", "c")]
    assert [len(result) for result in results if isinstance(result, list)] == [1, 2, 1]
    assert scene.observed == [1, 3]


def test_transaction_has_at_most_batch_max_requests(scene: QueueScene) -> None:
    scene.submit_first()
    for name in "abc":
        scene.submit(*[name] * (BATCH_MAX // 2))
    scene.finish()
    assert [len(batch) for batch in scene.bank.batches] == [1, BATCH_MAX, BATCH_MAX // 2]


class TwoWriterStore(MemoryStore):
    """Store with two writers."""

    writers = 2


def test_second_writer_starts_only_with_enough_requests(separate_process: bool) -> None:
    scene = QueueScene(store=TwoWriterStore(), separate_process=separate_process)
    scene.submit_first()
    with ThreadPoolExecutor(1) as pool:
        for _ in range(NEXT_BATCH_MIN - 1):
            # Wait for another thread, so that a writer that was notified by mistake begins.
            pool.submit(scene.submit, "few").result()
    scene.wait_until_queued()
    assert len(scene.bank.batches) == 1
    scene.submit("one more")
    wait_until(lambda: len(scene.bank.batches) == 2, "the other writer to begin")
    scene.submit("later")
    wait_until(lambda: scene.writers.waiting == 1, "it to wait")
    scene.finish()
    assert [len(batch) for batch in scene.bank.batches] == [1, NEXT_BATCH_MIN, 1]
    assert scene.granted() == {"first", "few", "one more", "later"}
    assert count_entries(scene.bank.store) == NEXT_BATCH_MIN + 2


def test_two_writers_answer_waiting_requests_and_close(separate_process: bool) -> None:
    threads = set(threading.enumerate())
    scene = QueueScene(store=TwoWriterStore(), separate_process=separate_process)
    scene.submit_first()
    scene.queue.submit([], lambda result: scene.results.__setitem__("nothing", result))
    scene.submit("a")
    scene.finish()
    assert scene.granted() == {"first", "nothing", "a"}
    assert set(threading.enumerate()) <= threads


def test_queue_limit_lets_one_longer_batch_in_when_empty(separate_process: bool) -> None:
    scene = QueueScene(capacity=500, separate_process=separate_process)
    scene.submit(*["long"] * 600)
    wait_until(lambda: scene.bank.batches, "the ledger to apply a batch")
    # A separate process does not report started requests: they count until they are answered.
    if not separate_process:
        scene.submit(*["longer"] * 600)
    assert scene.queue.waiting == 600
    with pytest.raises(Busy, match="600 requests are waiting already"):
        scene.submit("one more")
    scene.finish()
    assert scene.granted() == ({"long"} if separate_process else {"long", "longer"})
    assert scene.queue.waiting == 0


def test_batch_larger_than_one_transaction_is_refused(scene: QueueScene) -> None:
    """A longer batch would be applied in parts, and Busy would no longer mean "not applied"."""
    with pytest.raises(ValueError, match="1001 requests do not fit into one transaction"):
        scene.submit(*["long"] * (BATCH_MAX + 1))
    scene.finish()
    assert count_entries(scene.bank.store) == 0


def is_closed(queue: WriteQueue) -> bool:
    try:
        queue.submit([], lambda _: None)
    except Busy:
        return True
    return False


def test_close_answers_waiting_requests_and_refuses_new_ones(scene: QueueScene) -> None:
    scene.submit_first()
    scene.submit("a")
    closing = threading.Thread(target=scene.queue.close)
    closing.start()
    wait_until(lambda: is_closed(scene.queue), "the queue to close")
    with pytest.raises(Busy, match="the server is stopping"):
        scene.submit("b")
    scene.bank.gate.set()
    closing.join()
    assert scene.granted() == {"first", "a"}
