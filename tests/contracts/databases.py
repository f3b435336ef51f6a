"""Locations of the databases of a test. A test may open any number of stores there; all are closed
at the end.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from sqlalchemy import Engine, create_engine, text

from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.sqlite.driver import driver


class Place:
    """URL of a migrated ledger. In memory there is only one store, which every call returns."""

    def __init__(self, url: str, only: Store | None = None) -> None:
        self.url = url
        self._only = only
        self._opened: list[Store] = []
        self._engines: list[Engine] = []

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for store in self._opened:
            store.close()
        for engine in self._engines:
            engine.dispose()

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgresql")

    def open(self) -> Store:
        """Open another server's store on the same ledger."""
        store = self._only or open_store(self.url)
        self._opened.append(store)
        return store

    def run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement directly, as an administrator would, and commit it."""
        with self._administrator().begin() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    def names(self, query: str) -> list[str]:
        """Return the names of a query's columns."""
        with self._administrator().connect() as connection:
            return list(connection.execute(text(query)).keys())

    def _administrator(self) -> Engine:
        if not self._engines:
            self._engines.append(
                create_engine(self.url)
                if self.is_postgres
                else create_engine(self.url, module=driver)
            )
        return self._engines[0]
