"""Pages of every list: consecutive in both directions, and of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairbank.bank.query import (
    PAGE_MAX,
    AllocationQuery,
    EntryQuery,
    Page,
    ProjectQuery,
    RefusalQuery,
    RunQuery,
)
from fairbank.store.contract import Store
from tests.contracts.small_site import SnapshotReader, granted, project

PAGED: dict[str, Callable[[Store, Page], list[Any]]] = {
    "projects": lambda store, page: SnapshotReader(store).projects(ProjectQuery(), page),
    "allocations": lambda store, page: SnapshotReader(store).allocations(AllocationQuery(), page),
    "runs": lambda store, page: SnapshotReader(store).runs(RunQuery(), page),
    "entries": lambda store, page: SnapshotReader(store).entries(EntryQuery(), page),
    "refusals": lambda store, page: SnapshotReader(store).refusals(RefusalQuery(), page),
    "members": lambda store, page: SnapshotReader(store).members(1, page),
    "drawn": lambda store, page: SnapshotReader(store).allocation_users(1, page),
}


def place_of(row: Any) -> int:
    """Return the value for a page's `after`."""
    return int(row.uid if hasattr(row, "uid") else row.id)


@pytest.mark.parametrize("what", PAGED)
def test_pages_work_in_both_directions(filled: Store, what: str) -> None:
    all_rows = PAGED[what](filled, Page(PAGE_MAX))
    for newest_first in (False, True):
        expected = all_rows[::-1] if newest_first else all_rows
        result: list[Any] = []
        while page := PAGED[what](
            filled, Page(2, place_of(result[-1]) if result else None, newest_first)
        ):
            assert len(page) <= 2
            result += page
        assert result == expected


@pytest.mark.parametrize("what", PAGED)
def test_page_beyond_the_end_is_empty(filled: Store, what: str) -> None:
    for page in (Page(after=2**53), Page(after=0, newest_first=True), Page(0), Page(-5)):
        assert PAGED[what](filled, page) == []


def test_page_has_at_most_one_extra_row(store: Store) -> None:
    granted(store, *(project(f"p{number}", number) for number in range(1, PAGE_MAX + 3)))
    assert len(SnapshotReader(store).projects(ProjectQuery(), Page(10**9))) == PAGE_MAX + 1
    assert (
        len(SnapshotReader(store).projects(ProjectQuery(), Page(PAGE_MAX).and_one)) == PAGE_MAX + 1
    )
