"""SQLite library: that of pysqlite3 if installed, otherwise Python's."""

from __future__ import annotations

from typing import Any

try:
    from pysqlite3 import dbapi2 as _driver
except ImportError:
    from sqlite3 import dbapi2 as _driver

driver: Any = _driver
VERSION: tuple[int, int, int] = driver.sqlite_version_info

Version = tuple[int, int, int]

FIRST_CORRECTED: Version = (3, 51, 3)
CORRECTED_RELEASES: tuple[Version, ...] = ((3, 44, 6), (3, 50, 7))


def is_wal_safe(version: Version) -> bool:
    """Return whether `version` has a write-ahead log without the WAL-reset bug."""
    if version >= FIRST_CORRECTED:
        return True
    return any(version[:2] == line[:2] and version >= line for line in CORRECTED_RELEASES)
