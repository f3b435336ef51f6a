"""Concurrent clients, and how to detect that one waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fairbank.bank.requests import Request
from fairbank.bank.rules import Outcome
from fairbank.store.contract import Store
from tests.contracts.databases import Place
from tests.contracts.small_site import ask

Client = Callable[[], list[Outcome]]


def run_together(*clients: Client) -> list[Outcome]:
    """Start all calls at the same moment and return their results in order."""
    start = threading.Barrier(len(clients))

    def work(client: Client) -> list[Outcome]:
        start.wait(30)
        return client()

    with ThreadPoolExecutor(len(clients)) as pool:
        return [outcome for answers in pool.map(work, clients) for outcome in answers]


def send_one_by_one(store: Store, *requests: Request) -> Client:
    return lambda: [outcome for request in requests for outcome in ask(store, request)]


def is_waiting_for_lock(place: Place) -> bool:
    return bool(
        place.run(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname ="
            " current_database()"
        )
    )
