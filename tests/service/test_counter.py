"""The counter: what arrives together is judged together, what fails fails alone, and what waited too long is not carried out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairbank.bank.ledger import Outcome
from fairbank.bank.policy import Policy
from fairbank.bank.wish import Asked, Note
from fairbank.service.bank import BATCH_MAX, Bank
from fairbank.service.counter import ENOUGH, Came, Counter
from fairbank.service.patience import Deadline, Patience
from fairbank.store.contract import Store
from fairbank.store.memory import MemoryStore
from fairbank.store.migrating import migrate
from fairbank.store.sqlite import SqliteStore
from fairbank.store.sqlite_driver import driver
from fairbank.values.time import Instant
from fairbank.values.trouble import Busy, Trouble, Unreachable
from tests.support.waiting import wait_until

POISON = "poison"


def notes(*texts: str) -> list[Asked]:
    return [Asked(Note(details=each), Instant(1_000), 0) for each in texts]


def kept(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()


class Gated(Bank):
    """A bank behind a gate, that remembers what it was asked for. A batch with poison in it fails with `failure`."""

    def __init__(self, store: Store, patience: Patience) -> None:
        super().__init__(store, Policy(), patience)
        self.gate = threading.Event()
        self.asked: list[list[str]] = []
        self.failure: Exception = Trouble("this wish breaks the bank")
        self.before_failing: Callable[[], None] = lambda: None

    def ask(self, batch: Sequence[Asked], deadline: Deadline | None = None) -> list[Outcome]:
        texts = [str(each.wish.details) for each in batch if isinstance(each.wish, Note)]
        self.asked.append(texts)
        assert self.gate.wait(30)
        if POISON in texts:
            self.before_failing()
            raise self.failure
        return super().ask(batch, deadline)


class Scene:
    """A counter in front of a gated bank, a clock that stands, and what everybody was told."""

    def __init__(self, room: int = 5_000, store: Store | None = None) -> None:
        self.now = 0.0
        self.bank = Gated(store or MemoryStore(), Patience(30, lambda: self.now))
        self.counter = Counter(self.bank, room=room)
        self.told: dict[str, Came] = {}
        self.watched: list[int] = []
        self.counter.watch = lambda outcomes: self.watched.append(len(outcomes))

    def submit(self, *texts: str) -> None:
        self.counter.submit(notes(*texts), lambda came: self.told.__setitem__(texts[0], came))

    def occupy(self) -> None:
        """The bank is busy with `first`; whatever is submitted now gathers."""
        self.submit("first")
        wait_until(lambda: self.bank.asked, "the bank to be asked")

    def finish(self) -> None:
        self.bank.gate.set()
        self.counter.close()

    def served(self) -> set[str]:
        return {name for name, came in self.told.items() if isinstance(came, list)}


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.finish()


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


def test_where_two_write_the_second_begins_while_the_first_is_at_work_but_only_with_enough() -> None:
    scene = Scene(store=ForTwo())
    scene.occupy()
    scene.submit(*["few"] * (ENOUGH - 1))
    wait_until(lambda: len(scene.counter._changed._waiters) == 1, "the other window to be idle")  # type: ignore[attr-defined]
    assert len(scene.bank.asked) == 1
    scene.submit("one more")
    wait_until(lambda: len(scene.bank.asked) == 2, "the other window to begin")
    scene.submit("later")
    assert scene.counter.waiting == 1
    scene.finish()
    assert [len(each) for each in scene.bank.asked] == [1, ENOUGH, 1]
    assert scene.served() == {"first", "few", "one more", "later"}
    assert kept(scene.bank.store) == ENOUGH + 2


def test_two_windows_answer_what_waits_and_close() -> None:
    scene = Scene(store=ForTwo())
    scene.occupy()
    scene.counter.submit([], lambda came: scene.told.__setitem__("nothing", came))
    scene.submit("a")
    scene.finish()
    assert scene.served() == {"first", "nothing", "a"}
    assert not any(each.is_alive() for each in scene.counter._windows)


def test_there_is_room_for_so_many_and_for_one_that_is_longer_when_nobody_waits() -> None:
    scene = Scene(room=500)
    scene.occupy()
    scene.submit(*["long"] * 600)
    assert scene.counter.waiting == 600
    with pytest.raises(Busy, match="600 wishes are waiting already"):
        scene.submit("one more")
    scene.finish()
    assert scene.served() == {"first", "long"}


def test_what_one_transaction_does_not_take_is_not_taken_at_all(scene: Scene) -> None:
    """It would be carried out in pieces, and its asker told Busy after some of them."""
    with pytest.raises(ValueError, match="1001 wishes do not fit into one transaction"):
        scene.submit(*["long"] * (BATCH_MAX + 1))
    scene.finish()
    assert kept(scene.bank.store) == 0


def test_one_bad_submission_does_not_spoil_the_others_and_all_that_is_judged_is_watched(scene: Scene) -> None:
    scene.occupy()
    scene.submit("a", "b")
    scene.submit(POISON)
    scene.submit("c")
    scene.finish()
    assert scene.served() == {"first", "a", "c"}
    assert scene.told[POISON] is scene.bank.failure
    assert scene.watched == [1, 2, 1]


@pytest.mark.parametrize("others", [0, 2])
def test_where_nobody_answers_nobody_is_asked_for_again(scene: Scene, others: int) -> None:
    scene.bank.failure = Unreachable("nobody is there")
    scene.occupy()
    scene.submit(POISON)
    for each in range(others):
        scene.submit(str(each))
    scene.finish()
    assert len(scene.bank.asked) == 2
    assert {name for name, came in scene.told.items() if came is scene.bank.failure} == {POISON, *map(str, range(others))}


def test_where_somebody_stops_answering_the_rest_is_told_so(scene: Scene) -> None:
    def lose() -> None:
        scene.bank.failure = Unreachable("nobody is there") if len(scene.bank.asked) > 2 else scene.bank.failure

    scene.bank.before_failing = lose
    scene.occupy()
    scene.submit("a")
    scene.submit(POISON)
    scene.submit("b")
    scene.finish()
    assert scene.served() == {"first"} | {"a"}
    assert isinstance(scene.told["b"], Unreachable)


def test_a_batch_whose_time_is_over_is_not_asked_for_apart(scene: Scene) -> None:
    def late() -> None:
        scene.now += 30

    scene.bank.before_failing = late
    scene.occupy()
    scene.submit("a")
    scene.submit(POISON)
    scene.finish()
    assert len(scene.bank.asked) == 2
    assert isinstance(scene.told["a"], Busy)
    assert kept(scene.bank.store) == 1


def test_what_waited_too_long_is_told_so_and_not_carried_out(scene: Scene) -> None:
    scene.occupy()
    scene.submit("early")
    scene.now += 20
    scene.submit("later")
    scene.now += 10
    scene.finish()
    assert scene.bank.asked == [["first"], ["later"]]
    assert "the request was not carried out" in str(scene.told["early"].remedy)  # type: ignore[union-attr]
    assert kept(scene.bank.store) == 2


def test_closing_answers_what_waits_and_takes_nothing_more(scene: Scene) -> None:
    scene.occupy()
    scene.submit("a")
    closing = threading.Thread(target=scene.counter.close)
    closing.start()
    wait_until(lambda: scene.counter._closed, "the counter to close")
    with pytest.raises(Busy, match="the server is stopping"):
        scene.submit("b")
    scene.bank.gate.set()
    closing.join()
    assert scene.served() == {"first", "a"}


def test_receivers_and_watchers_that_break_keep_nobody_from_their_answers(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    def gone(_: Any) -> None:
        raise RuntimeError("the event loop is closed")

    scene.occupy()
    scene.counter.watch = gone
    scene.counter.submit(notes("lost"), gone)
    scene.submit("a")
    scene.finish()
    assert scene.served() == {"first", "a"}
    assert "an answer reached nobody" in caplog.text
    assert "the counter's watcher failed" in caplog.text


def test_a_foreign_lock_keeps_everybody_for_one_patience_and_nothing_is_carried_out_later(tmp_path: Path) -> None:
    """Somebody's tool holds the file. Each of fifty submissions would wait for it in turn, twenty times."""
    path = tmp_path / "books.sqlite"
    migrate(f"sqlite:///{path}")
    store = SqliteStore(path, patience_seconds=0.02)
    counter = Counter(Bank(store, Policy(), Patience(0.3)))
    told: list[Came] = []
    other = driver.connect(str(path), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for each in range(50):
        counter.submit(notes(str(each)), told.append)
    wait_until(lambda: len(told) == 50, "everybody to be told", seconds=5)
    assert all(isinstance(each, Busy) for each in told)
    other.execute("ROLLBACK")
    assert len(counter.ask(notes("now"))) == 1
    counter.close()
    assert kept(store) == 1
    other.close()
    store.close()
