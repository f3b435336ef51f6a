"""Project cache: known projects are found, and unknown ones cost next to nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

from fairbank.bank.policy import Policy
from fairbank.core.time import Instant, ManualClock
from fairbank.service import project_cache as directory_module
from fairbank.service.access.identity import Staff
from fairbank.service.project_cache import ProjectCache
from fairbank.service.services import services
from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore
from tests.contracts.site import granted, project
from tests.support.conditions import wait_until
from tests.support.ticks import Ticks


class Watched(MemoryStore):
    """Store that counts its snapshots."""

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
    store, ticks = Watched(), Ticks()
    directory = ProjectCache(store, ticks)
    for second in range(1, 4):
        for number in range(500):
            assert directory.by_account(f"nosuch{number}") is None
        assert store.readings == second
        ticks.at += 1


def test_a_project_that_another_server_entered_is_found_a_second_later() -> None:
    store, ticks = Watched(), Ticks()
    directory = ProjectCache(store, ticks)
    assert directory.by_account("physics") is None
    granted(store, project("physics", 100))
    assert directory.by_account("physics") is None
    ticks.at += 1
    result = directory.by_account("physics")
    assert result is not None
    assert directory.by_id(result.id) == result


def test_a_known_account_is_read_again_only_when_it_is_stale() -> None:
    store, ticks = Watched(), Ticks()
    granted(store, project("physics", 100))
    directory = ProjectCache(store, ticks)
    for second in range(11):
        ticks.at = 100 + second
        for _ in range(10):
            assert directory.by_account("physics") is not None
    assert store.readings == 3


def test_a_wall_clock_set_back_keeps_no_project_unknown() -> None:
    """The clock may be reset by hand or by a stopped virtual machine: the cache does not use the
    bank's clock.
    """
    store, ticks, wall = Watched(), Ticks(), ManualClock(10_000)
    house = services(
        store,
        clock=wall,
        staff=Staff(),
        clusters={},
        policy=Policy(),
        key=b"k" * 32,
        monotonic=ticks,
    )
    try:
        assert house.project_cache.by_account("physics") is None
        granted(store, project("physics", 100))
        wall.at = Instant(wall.at - 3_600)
        ticks.at += 1
        assert house.project_cache.by_account("physics") is not None
    finally:
        house.close()


def test_a_number_that_another_server_entered_is_found_at_once() -> None:
    store, ticks = Watched(), Ticks()
    directory = ProjectCache(store, ticks)
    assert directory.by_account("physics") is None
    granted(store, project("physics", 100))
    assert directory.by_id(1).account == "physics"


def test_cache_miss_of_many_requests_reads_once() -> None:
    store, ticks = Watched(), Ticks()
    granted(store, project("physics", 100))
    directory = ProjectCache(store, ticks)
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
    store, ticks = Watched(), Ticks()
    directory = ProjectCache(store, ticks)

    def dawdle() -> None:
        ticks.at += 3

    store.before_reading = dawdle
    directory.refresh()
    assert store.readings == 1
    store.before_reading = lambda: None
    granted(store, project("physics", 100))
    assert directory.by_account("physics") is not None


def test_a_new_child_has_its_whole_line_from_the_moment_it_is_known() -> None:
    """Another thread reads the cache between any two steps of a refresh."""
    store = MemoryStore()
    granted(store, project("parent", 100))
    directory = ProjectCache(store, Ticks())
    directory.refresh()
    granted(store, project("child", 101, parent=1))
    seen: list[tuple[int, ...] | None] = []

    def look() -> None:
        child = directory.cached("child")
        seen.append(directory.project_chain(child) if child else None)

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
