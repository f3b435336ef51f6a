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
from fairbank.core.time import Instant
from fairbank.service import project_cache as cache_module
from fairbank.service.access.identity import Staff
from fairbank.service.project_cache import ProjectCache
from fairbank.service.services import services
from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore
from tests.contracts.small_site import granted, project
from tests.support.clock import ManualClock
from tests.support.conditions import wait_until
from tests.support.ticks import Ticks


class CountingStore(MemoryStore):
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


def test_unknown_accounts_read_the_projects_once_a_second() -> None:
    store, ticks = CountingStore(), Ticks()
    cache = ProjectCache(store, ticks)
    for second in range(1, 4):
        for number in range(500):
            assert cache.by_account(f"nosuch{number}") is None
        assert store.readings == second
        ticks.at += 1


def test_project_of_another_server_is_found_after_a_second() -> None:
    store, ticks = CountingStore(), Ticks()
    cache = ProjectCache(store, ticks)
    assert cache.by_account("physics") is None
    granted(store, project("physics", 100))
    assert cache.by_account("physics") is None
    ticks.at += 1
    result = cache.by_account("physics")
    assert result is not None
    assert cache.by_id(result.id) == result


def test_known_account_is_read_again_only_when_it_is_stale() -> None:
    store, ticks = CountingStore(), Ticks()
    granted(store, project("physics", 100))
    cache = ProjectCache(store, ticks)
    for second in range(11):
        ticks.at = 100 + second
        for _ in range(10):
            assert cache.by_account("physics") is not None
    assert store.readings == 3


def test_wall_clock_set_back_keeps_no_project_unknown() -> None:
    """The clock may be reset by hand or by a stopped virtual machine: the cache does not use the
    bank's clock.
    """
    store, ticks, wall = CountingStore(), Ticks(), ManualClock(10_000)
    bank = services(
        store,
        clock=wall,
        staff=Staff(),
        clusters={},
        policy=Policy(),
        key=b"k" * 32,
        monotonic=ticks,
    )
    try:
        assert bank.project_cache.by_account("physics") is None
        granted(store, project("physics", 100))
        wall.at = Instant(wall.at - 3_600)
        ticks.at += 1
        assert bank.project_cache.by_account("physics") is not None
    finally:
        bank.close()


def test_project_number_of_another_server_is_found_at_once() -> None:
    store, ticks = CountingStore(), Ticks()
    cache = ProjectCache(store, ticks)
    assert cache.by_account("physics") is None
    granted(store, project("physics", 100))
    assert cache.by_id(1).account == "physics"


def test_cache_miss_of_many_requests_reads_once() -> None:
    store, ticks = CountingStore(), Ticks()
    granted(store, project("physics", 100))
    cache = ProjectCache(store, ticks)
    together = threading.Barrier(4)

    def read_cache() -> None:
        together.wait()
        cache.by_id(1)

    store.before_reading = lambda: wait_until(
        lambda: together.n_waiting == 0, "all threads to read"
    )
    threads = [threading.Thread(target=read_cache) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.readings == 1


def test_age_of_the_cache_counts_from_the_start_of_the_read() -> None:
    store, ticks = CountingStore(), Ticks()
    cache = ProjectCache(store, ticks)

    def delay() -> None:
        ticks.at += 3

    store.before_reading = delay
    cache.refresh()
    assert store.readings == 1
    store.before_reading = lambda: None
    granted(store, project("physics", 100))
    assert cache.by_account("physics") is not None


def test_new_child_has_its_whole_project_chain_at_once() -> None:
    """Another thread reads the cache between any two steps of a refresh."""
    store = MemoryStore()
    granted(store, project("parent", 100))
    cache = ProjectCache(store, Ticks())
    cache.refresh()
    granted(store, project("child", 101, parent=1))
    chains: list[tuple[int, ...] | None] = []

    def read_cache() -> None:
        child = cache.cached("child")
        chains.append(cache.project_chain(child) if child else None)

    def step(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != cache_module.__file__:
            return None
        with ThreadPoolExecutor(1) as pool:
            pool.submit(read_cache).result()
        return step

    previous_trace = sys.gettrace()
    sys.settrace(step)
    try:
        cache.refresh()
    finally:
        sys.settrace(previous_trace)
    read_cache()
    assert set(chains) == {None, (2, 1)}
