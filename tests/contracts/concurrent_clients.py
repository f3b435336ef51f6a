"""Concurrent clients, and how to detect that one waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fairbank.bank.requests import Request
from fairbank.bank.rules import Outcome
from fairbank.store.contract import Store
from tests.contracts.places import Place
from tests.contracts.site import ask

Clerk = Callable[[], list[Outcome]]


def at_once(*clerks: Clerk) -> list[Outcome]:
    """Start all calls at the same moment and return their results in order."""
    start = threading.Barrier(len(clerks))

    def work(clerk: Clerk) -> list[Outcome]:
        start.wait(30)
        return clerk()

    with ThreadPoolExecutor(len(clerks)) as pool:
        return [outcome for answers in pool.map(work, clerks) for outcome in answers]


def one_by_one(store: Store, *requests: Request) -> Clerk:
    return lambda: [outcome for request in requests for outcome in ask(store, request)]


def waiting(place: Place) -> bool:
    return bool(
        place.run(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname ="
            " current_database()"
        )
    )
