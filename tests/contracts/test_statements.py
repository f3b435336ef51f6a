"""Number of SQL statements of an operation: the same for a batch of 100 as for one request, and one
for each query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.query import (
    AllocationQuery,
    DebitPage,
    DebitQuery,
    EntryQuery,
    GroupPage,
    Page,
    ProjectQuery,
    RefusalQuery,
    RunQuery,
    UsageQuery,
    Visibility,
)
from fairbank.bank.requests import Deposit, Request
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from fairbank.core.usage_groups import UsageBy
from tests.contracts.databases import Place
from tests.contracts.small_site import ALICE, START, SnapshotReader, charge, fill, granted, hold
from tests.contracts.statement_count import Statements, count_statements, statements_taken

SIGHT = Visibility(uid=ALICE, projects=frozenset({1, 2}))
PAGE = Page()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Any:
    with count_statements(monkeypatch) as statements:
        yield statements


BATCHES: dict[str, Callable[[range], list[Request]]] = {
    "hold": lambda numbers: [
        hold(number, 1, project=number % 2 + 1, owner=number, key=f"h{number}")
        for number in numbers
    ],
    "charge": lambda numbers: [
        charge(number, 1, project=number % 2 + 1, owner=number, key=f"c{number}")
        for number in numbers
    ],
    "deposit": lambda numbers: [Deposit(allocation=1, amount=SuMinutes(1)) for _ in numbers],
}


def test_batch_of_100_takes_as_many_statements_as_one(
    statements: Statements, sql_place: Place
) -> None:
    store = sql_place.open()
    fill(store)
    for kind, batch in BATCHES.items():
        granted(store, *batch(range(1, 3)))  # whatever is done once only
        statements_taken(statements)
        granted(store, *batch(range(3, 4)))
        one = statements_taken(statements)
        granted(store, *batch(range(4, 104)))
        assert (
            statements_taken(statements) == one <= {"hold": 9, "charge": 9, "deposit": 6}[kind]
        ), kind


def test_repeated_requests_take_one_more_statement(
    statements: Statements, sql_place: Place
) -> None:
    store = sql_place.open()
    fill(store)
    holds, charges = (
        [hold(number, 1) for number in range(100)],
        [charge(number, 1) for number in range(100)],
    )
    first = []
    for batch in (holds, charges):
        granted(store, *batch)
        statements_taken(statements)
        first.append(granted(store, *batch))
        assert statements_taken(statements) <= 9
    assert all(request.again for batch in first for request in batch)


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("projects", (ProjectQuery(visibility=SIGHT), PAGE)),
        ("allocations", (AllocationQuery(visibility=SIGHT, ids=frozenset({1})), PAGE)),
        ("users", (frozenset({1, 2}),)),
        ("allocation_users", (1, PAGE)),
        (
            "debits",
            (
                DebitQuery(visibility=SIGHT, projects=frozenset({1, 2}), owner=ALICE),
                DebitPage(5, (1, 2)),
            ),
        ),
        ("runs", (RunQuery(visibility=SIGHT, projects=frozenset({1})), PAGE)),
        (
            "runs",
            (RunQuery(visibility=SIGHT, resource="cpu", category="startup", active_at=START), PAGE),
        ),
        ("entries", (EntryQuery(visibility=SIGHT), PAGE)),
        (
            "refusals",
            (
                RefusalQuery(
                    visibility=SIGHT, resource="cpu", category="startup", cluster="darwin", job_id=1
                ),
                PAGE,
            ),
        ),
        ("statement", (1, Instant(0), Instant(START + 1), PAGE)),
        ("statement", (1, Instant(0), Instant(START + 1), PAGE, frozenset({Kind.HOLD}))),
        ("term_entries", (frozenset({1, 2}),)),
        ("open_holds", (frozenset({1, 2}),)),
        ("entry_before", (1, Instant(START + 1))),
        (
            "usage",
            (
                UsageQuery(visibility=SIGHT, resources=frozenset({"cpu"})),
                UsageBy.MONTH,
                GroupPage(5, ("2026-01", "", "")),
            ),
        ),
        ("usage", (UsageQuery(visibility=SIGHT), UsageBy.PARTITION, GroupPage(5, ("a", "", "")))),
        ("members", (1, PAGE)),
        ("memberships", (ALICE,)),
        ("overdue_runs", (START, 10)),
        ("expired_allocations", (START, 10)),
        ("registry", ()),
        ("tokens", (ALICE, PAGE)),
        ("token", (b"digest",)),
    ],
)
def test_query_is_one_statement(
    statements: Statements, sql_place: Place, question: str, about: tuple[Any, ...]
) -> None:
    store = sql_place.open()
    fill(store)
    granted(store, hold(1, 5))
    reader = SnapshotReader(store)
    getattr(reader, question)(*about)
    statements_taken(statements)
    getattr(reader, question)(*about)
    assert statements_taken(statements) == 1


def test_slow_count_sets_its_timeout_first(statements: Statements, sql_place: Place) -> None:
    reader = SnapshotReader(sql_place.open())
    statements_taken(statements)
    reader.count_entries()
    assert statements_taken(statements) == (2 if sql_place.is_postgres else 1)
