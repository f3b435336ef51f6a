"""The directory of projects: what is there is found, what is not costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fairbank.service.directory import Directory
from fairbank.store.contract import Reader
from fairbank.store.memory import MemoryStore
from fairbank.values.time import Instant, StoppedClock
from tests.contracts.centre import granted, project


class Watched(MemoryStore):
    """Counts how often it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        self.readings += 1
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
