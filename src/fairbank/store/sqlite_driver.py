"""Which SQLite is spoken to: the one that pysqlite3 brings along where there is one, else Python's own."""

from __future__ import annotations

from typing import Any

try:
    from pysqlite3 import dbapi2 as _driver
except ImportError:
    from sqlite3 import dbapi2 as _driver

driver: Any = _driver
VERSION: tuple[int, int, int] = driver.sqlite_version_info
