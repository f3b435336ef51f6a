"""Numbers of entries: unique, and in the order in which each journal was written."""

from __future__ import annotations

import threading

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.lock_set import LockSet
from fairbank.bank.policy import Policy
from fairbank.bank.requests import AuditNote, CreateProject, Request, SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.service.ledger import Ledger
from fairbank.store.contract import Store
from tests.contracts.concurrent_clients import is_waiting_for_lock, run_together, send_one_by_one
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    START,
    allocation,
    ask,
    contents,
    fill,
    granted,
    hold,
    late_charge,
    project,
    token,
)
from tests.support.conditions import wait_until


def test_entries_of_two_servers_have_different_numbers(place: Place) -> None:
    stores = [place.open(), place.open()]
    fill(stores[0])
    run_together(
        *(
            send_one_by_one(store, *(late_charge(100 * index + number, 1) for number in range(20)))
            for index, store in enumerate(stores, 1)
        )
    )
    numbers = [entry.id for entry in contents(stores[0])[5]]
    assert len(set(numbers)) == len(numbers) == 46


def test_entry_numbers_of_two_servers_follow_time(sql_place: Place) -> None:
    """Lists are in the order of the numbers, and a reader continues from the highest one."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    output: list[Done] = []
    for number in range(1, 7, 2):
        output += granted(one, hold(number, 10))
        output += granted(two, hold(number + 1, 10), AuditNote(details="as it happened"))
    entries = [outcome.entry or 0 for outcome in output]
    assert entries == sorted(set(entries))


def test_dry_run_takes_no_numbers(store: Store) -> None:
    """Neither numbers that people type nor numbers of entries are used up, on PostgreSQL too, where
    a drawn number is lost.
    """
    fill(store)
    requests = (
        project("biology", 300),
        allocation(1, 5, resource="gpu"),
        token(),
        hold(1, 10),
        hold(2, 10, chain=()),
    )
    bank = Ledger(store, Policy())
    first = {type(request): numbers(bank, request) for request in requests}
    assert {type(request): numbers(bank, request) for request in requests} == first
    done = granted(store, *requests[:3])
    assert [(outcome.project, outcome.allocation, outcome.token) for outcome in done] == [
        (3, None, None),
        (None, 3, None),
        (None, None, 1),
    ]
    assert done[0].entry == first[CreateProject][0]


def numbers(bank: Ledger, request: Request) -> list[int]:
    """Return the numbers of the entries that would be written, and of the new rows in them."""
    _, work = bank.dry_run(SubmittedRequest(request, START, 0))
    changes = work.changes
    return [
        *(entry.id for entry in work.entries),
        *changes.opened,
        *changes.new_projects,
        *changes.new_tokens,
    ]


def test_numbers_are_taken_after_rows_are_locked(postgres_place: Place) -> None:
    """The entries of a journal are numbered in its order, for any order of waiting."""
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    locked, drawn = threading.Event(), list[int]()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(LockSet(allocations={1}))
            locked.set()
            wait_until(
                lambda: is_waiting_for_lock(postgres_place), "the second server to wait for a lock"
            )
            drawn.append(postgres_place.run("SELECT nextval('entry_id_seq')")[0][0])
        return []

    def second() -> list[Outcome]:
        assert locked.wait(30)
        return ask(two, hold(1, 10))

    run_together(first, second)
    assert [row.id > drawn[0] for row in contents(one)[5] if row.kind is Kind.HOLD] == [True]


@pytest.mark.parametrize(
    "bank_request",
    [AuditNote(details="as it happened"), hold(2, 10, resource="gpu"), hold(2, 10, chain=())],
)
def test_registry_entry_numbers_rise(postgres_place: Place, bank_request: Request) -> None:
    """They are drawn when the registry is locked, which is the last lock, also where only the rules
    find that it is needed.
    """
    one, two = postgres_place.open(), postgres_place.open()
    fill(one)
    locked, drawn = threading.Event(), list[int]()

    def first() -> list[Outcome]:
        with one.transaction() as transaction:
            transaction.load(LockSet(registry=True))
            locked.set()
            wait_until(
                lambda: is_waiting_for_lock(postgres_place),
                "the second server to wait for the registry",
            )
            drawn.append(postgres_place.run("SELECT nextval('entry_id_seq')")[0][0])
        return []

    def second() -> list[Outcome]:
        assert locked.wait(30)
        return ask(two, hold(1, 10), bank_request)

    run_together(first, second)
    late = [row for row in contents(one)[5] if row.kind in (Kind.HOLD, Kind.REFUSAL, Kind.NOTE)]
    assert [row.id > drawn[0] for row in late] == [True, True]
