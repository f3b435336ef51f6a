"""Damaged indexes of an SQLite file: their content differs from the tables, while their definitions
stay.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from fairbank.store.sqlite.driver import driver


def replant(path: Path, index: str, *made_by: str) -> None:
    """Let `index` begin at the root page of the index that these statements create under the name
    planted. The file must be closed.
    """
    with closing(driver.connect(str(path), isolation_level=None)) as connection:
        for statement in made_by:
            connection.execute(statement)
        connection.execute("PRAGMA writable_schema = ON")
        root = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'planted'"
        ).fetchone()
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (*root, index))
        connection.execute("DELETE FROM sqlite_master WHERE name LIKE 'planted%'")
        connection.execute("PRAGMA writable_schema = RESET")


def hollow(path: Path, *indexes: str) -> None:
    """Let each index begin at an empty page."""
    for index in indexes:
        replant(
            path, index, "CREATE TABLE planted_in (a)", "CREATE INDEX planted ON planted_in (a)"
        )
