"""The counter: what arrives together is judged together, in one window or two, while there
is room.
"""

from __future__ import annotations

import threading

import pytest

from fairbank.core.errors import Busy
from fairbank.service.ledger import BATCH_MAX
from fairbank.service.write_queue.writers import NEXT_BATCH_MIN
from fairbank.store.memory.store import MemoryStore
from tests.service.gated_bank import Scene, kept
from tests.support.conditions import wait_until


def test_what_gathers_is_judged_in_one_batch(scene: Scene) -> None:
    scene.occupy()
    scene.submit("a", "b")
    scene.submit("c")
    scene.finish()
    assert scene.bank.asked == [["first"], ["a", "b", "c"]]
    assert [len(scene.told[name]) for name in ("first", "a", "c")] == [1, 2, 1]  # type: ignore[arg-type]
    assert scene.watched == [1, 3]


def test_a_batch_is_no_longer_than_one_transaction_takes(scene: Scene) -> None:
    scene.occupy()
    for name in "abc":
        scene.submit(*[name] * (BATCH_MAX // 2))
    scene.finish()
    assert [len(each) for each in scene.bank.asked] == [1, BATCH_MAX, BATCH_MAX // 2]


class ForTwo(MemoryStore):
    """A store that says it carries on two transactions side by side."""

    writers = 2


def test_where_two_write_the_second_begins_while_the_first_is_at_work_but_only_with_enough(
    apart: bool,
) -> None:
    scene = Scene(store=ForTwo(), apart=apart)
    scene.occupy()
    scene.submit(*["few"] * (NEXT_BATCH_MIN - 1))
    wait_until(lambda: len(scene.windows._changed._waiters) == 1, "the other window to be idle")  # type: ignore[attr-defined]
    scene.gathered()
    assert len(scene.bank.asked) == 1
    scene.submit("one more")
    wait_until(lambda: len(scene.bank.asked) == 2, "the other window to begin")
    scene.submit("later")
    wait_until(lambda: scene.windows.waiting == 1, "it to wait")
    scene.finish()
    assert [len(each) for each in scene.bank.asked] == [1, NEXT_BATCH_MIN, 1]
    assert scene.served() == {"first", "few", "one more", "later"}
    assert kept(scene.bank.store) == NEXT_BATCH_MIN + 2


def test_two_windows_answer_what_waits_and_close(apart: bool) -> None:
    scene = Scene(store=ForTwo(), apart=apart)
    scene.occupy()
    scene.counter.submit([], lambda came: scene.told.__setitem__("nothing", came))
    scene.submit("a")
    scene.finish()
    assert scene.served() == {"first", "nothing", "a"}
    assert not any(each.is_alive() for each in scene.windows._threads)


def test_queue_limit_lets_one_longer_batch_in_when_empty(apart: bool) -> None:
    scene = Scene(room=500, apart=apart)
    scene.submit(*["long"] * 600)
    wait_until(lambda: scene.bank.asked, "the bank to be asked")
    # from a process of their own nobody tells what is begun: there it counts until it is answered
    if not apart:
        scene.submit(*["longer"] * 600)
    assert scene.counter.waiting == 600
    with pytest.raises(Busy, match="600 requests are waiting already"):
        scene.submit("one more")
    scene.finish()
    assert scene.served() == ({"long"} if apart else {"long", "longer"})
    assert scene.counter.waiting == 0


def test_what_one_transaction_does_not_take_is_not_taken_at_all(scene: Scene) -> None:
    """It would be carried out in pieces, and its identity told Busy after some of them."""
    with pytest.raises(ValueError, match="1001 requests do not fit into one transaction"):
        scene.submit(*["long"] * (BATCH_MAX + 1))
    scene.finish()
    assert kept(scene.bank.store) == 0


def test_closing_answers_what_waits_and_takes_nothing_more(scene: Scene) -> None:
    scene.occupy()
    scene.submit("a")
    closing = threading.Thread(target=scene.counter.close)
    closing.start()
    wait_until(lambda: scene.counter._closed, "the counter to close")  # type: ignore[attr-defined]
    with pytest.raises(Busy, match="the server is stopping"):
        scene.submit("b")
    scene.bank.gate.set()
    closing.join()
    assert scene.served() == {"first", "a"}
