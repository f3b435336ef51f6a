"""The directory of projects: what is there is found, what is not costs next to nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fairbank.service import directory as directory_module
from fairbank.service.directory import Directory
from fairbank.store.contract import Reader
from fairbank.store.memory import MemoryStore
from fairbank.values.time import Instant, StoppedClock
from tests.contracts.centre import granted, project
from tests.support.waiting import wait_until


class Watched(MemoryStore):
    """Counts how often it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0
        self.before_reading: Callable[[], None] = lambda: None

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self.readings += 1
        self.before_reading()
        with super().reading() as reader:
            yield reader


def test_a_flood_of_unknown_accounts_reads_the_projects_once_a_second() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    directory = Directory(store, clock)
    for second in range(1, 4):
        for number in range(500):
            assert directory.by_account(f"nosuch{number}") is None
        assert store.readings == second
        clock.at = Instant(clock.at + 1)


def test_a_project_that_another_server_entered_is_found_a_second_later() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    directory = Directory(store, clock)
    assert directory.by_account("physics") is None
    granted(store, project("physics", 100))
    assert directory.by_account("physics") is None
    clock.at = Instant(clock.at + 1)
    found = directory.by_account("physics")
    assert found is not None
    assert directory.by_id(found.id) == found


def test_a_known_account_is_read_again_only_when_it_is_stale() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    granted(store, project("physics", 100))
    directory = Directory(store, clock)
    for second in range(11):
        clock.at = Instant(1_000 + second)
        for _ in range(10):
            assert directory.by_account("physics") is not None
    assert store.readings == 3


def test_a_number_that_another_server_entered_is_found_at_once() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    directory = Directory(store, clock)
    assert directory.by_account("physics") is None
    granted(store, project("physics", 100))
    assert directory.by_id(1).account == "physics"


def test_many_who_miss_the_same_number_read_once() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    granted(store, project("physics", 100))
    directory = Directory(store, clock)
    together = threading.Barrier(4)

    def look() -> None:
        together.wait()
        directory.by_id(1)

    store.before_reading = lambda: wait_until(lambda: together.n_waiting == 0, "all to look")
    lookers = [threading.Thread(target=look) for _ in range(4)]
    for each in lookers:
        each.start()
    for each in lookers:
        each.join()
    assert store.readings == 1


def test_what_is_known_is_as_old_as_the_beginning_of_its_reading() -> None:
    store, clock = Watched(), StoppedClock(1_000)
    directory = Directory(store, clock)

    def dawdle() -> None:
        clock.at = Instant(clock.at + 3)

    store.before_reading = dawdle
    directory.refresh()
    assert store.readings == 1
    store.before_reading = lambda: None
    granted(store, project("physics", 100))
    assert directory.by_account("physics") is not None


def test_a_new_child_has_its_whole_line_from_the_moment_it_is_known() -> None:
    """Another thread looks between any two steps of a refresh."""
    store = MemoryStore()
    granted(store, project("parent", 100))
    directory = Directory(store, StoppedClock(1_000))
    directory.refresh()
    granted(store, project("child", 101, parent=1))
    seen: list[tuple[int, ...] | None] = []

    def look() -> None:
        child = directory.known("child")
        seen.append(directory.line(child) if child else None)

    def step(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != directory_module.__file__:
            return None
        with ThreadPoolExecutor(1) as other:
            other.submit(look).result()
        return step

    usual = sys.gettrace()
    sys.settrace(step)
    try:
        directory.refresh()
    finally:
        sys.settrace(usual)
    look()
    assert set(seen) == {None, (2, 1)}
