"""Empty banks to measure: on SQLite in a temporary directory and on a PostgreSQL server of our
own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairbank.bank.allocation import AllocationTerms
from fairbank.bank.policy import Policy
from fairbank.bank.requests import CreateProject, Open, Request, SubmittedRequest
from fairbank.bank.rules import Done
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.service.ledger import Ledger
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from tests.support.postgres import (
    DEBIAN_15,
    Installation,
    PostgresServer,
    serving,
    wheel_installation,
)

MEMORY = "memory:"
RESOURCE, ACTOR = "cpu", 0
PERIOD = (Instant(0), Instant(2_000_000_000))
DEPOSIT = SuMinutes(10**12)


class BenchmarkBank(msgspec.Struct, frozen=True):
    """Bank over a new store with `projects` projects; project N has one allocation, number N."""

    url: str
    bank: Ledger
    projects: tuple[int, ...]
    allocations: tuple[int, ...]


@contextmanager
def sqlite_folder() -> Iterator[Path]:
    """Yield a directory for databases, and delete it afterwards."""
    with tempfile.TemporaryDirectory(prefix="fb-bench-") as folder:
        yield Path(folder)


def postgres_installation() -> Installation:
    """Return PostgreSQL from the installed wheel, or else from Debian's packages."""
    return wheel_installation() or Installation(DEBIAN_15)


@contextmanager
def postgres_server() -> Iterator[tuple[PostgresServer, Installation]]:
    """Yield a PostgreSQL with the configuration of initdb, fsync on."""
    installation = postgres_installation()
    with serving(installation, fsync=True) as server:
        yield server, installation


@contextmanager
def benchmark_bank(url: str, projects: int) -> Iterator[BenchmarkBank]:
    """Yield a new bank at `url` with enough credit for everything that a benchmark does."""
    migrate(url)
    store = open_store(url)
    try:
        bank = Ledger(store, Policy())
        names = [f"p{number}" for number in range(projects)]
        created = _ask(
            bank,
            [
                CreateProject(gname=name, gid=10_000 + number, account=name)
                for number, name in enumerate(names)
            ],
        )
        start, end = PERIOD
        numbers = tuple(done.project or 0 for done in created)
        requests = [
            Open(
                terms=AllocationTerms(
                    project=number, resource=RESOURCE, category="research", start=start, end=end
                ),
                deposit=DEPOSIT,
            )
            for number in numbers
        ]
        yield BenchmarkBank(
            url, bank, numbers, tuple(done.allocation or 0 for done in _ask(bank, requests))
        )
    finally:
        store.close()


def _ask(bank: Ledger, requests: list[CreateProject] | list[Open]) -> list[Done]:
    batch: list[Request] = [*requests]
    outcomes = bank.apply([SubmittedRequest(request, Instant(0), ACTOR) for request in batch])
    granted = [outcome for outcome in outcomes if isinstance(outcome, Done)]
    if len(granted) < len(outcomes):
        raise RuntimeError("the bank could not be set up")
    return granted
