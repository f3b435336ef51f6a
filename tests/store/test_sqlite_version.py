"""Versions of SQLite that are safe with a write-ahead log."""

from __future__ import annotations

import pytest

from fairbank.store.sqlite.driver import is_wal_safe


@pytest.mark.parametrize(
    "version",
    [(3, 7, 0), (3, 40, 1), (3, 44, 5), (3, 45, 0), (3, 45, 3), (3, 50, 6), (3, 51, 0), (3, 51, 2)],
)
def test_known_bug_is_detected(version: tuple[int, int, int]) -> None:
    assert not is_wal_safe(version)


@pytest.mark.parametrize(
    "version",
    [
        (3, 44, 6),
        (3, 44, 9),
        (3, 50, 7),
        (3, 50, 10),
        (3, 51, 3),
        (3, 52, 0),
        (3, 53, 4),
        (4, 0, 0),
    ],
)
def test_fixed_versions_of_sqlite_are_safe(version: tuple[int, int, int]) -> None:
    assert is_wal_safe(version)


def test_sqlite_without_wal_is_not_safe() -> None:
    assert not is_wal_safe((3, 6, 23))
