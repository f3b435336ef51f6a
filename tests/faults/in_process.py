"""Audit and backups in the process of the test: the code of the commands, without starting another
Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from fairbank.bank.audit import Finding, Head
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.backup import Backups
from fairbank.setup.bank_settings import SystemClock
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate


@contextmanager
def store_at(url: str) -> Iterator[Store]:
    """Open the store, and create its tables if there are none."""
    migrate(url)
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def findings(url: str, heads: Mapping[int, Head] = MappingProxyType({})) -> tuple[Finding, ...]:
    """Return the findings of `fairbank audit verify`."""
    with store_at(url) as store:
        return Audit(store).verify(heads).findings


def heads(url: str) -> dict[int, Head]:
    """Return the output of `fairbank audit heads`."""
    with store_at(url) as store:
        return {head.allocation: head for head in Audit(store).journal_heads()}


def restore(url: str, path: Path, *, replace: bool = False) -> int:
    """Restore a backup as `fairbank restore` does."""
    with store_at(url) as store:
        return Backups(store, SystemClock()).restore(path, replace=replace)
