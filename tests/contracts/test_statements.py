"""Number of SQL statements of an operation: the same for a batch of 100 as for one request, and one
for each query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
    UsageBy,
    UsageQuery,
    Visibility,
)
from fairbank.bank.requests import Deposit, Request
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes
from tests.contracts.places import Place
from tests.contracts.site import ALICE, START, Look, charge, fill, granted, hold
from tests.contracts.statement_count import Statements, counted, taken

SIGHT = Visibility(uid=ALICE, projects=frozenset({1, 2}))
PAGE = Page()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    with counted(monkeypatch) as statements:
        yield statements


BATCHES: dict[str, Callable[[range], list[Request]]] = {
    "hold": lambda numbers: [
        hold(number, 1, project=number % 2 + 1, owner=number, key=f"h{number}")
        for number in numbers
    ],
    "charge": lambda numbers: [charge(number, 1, key=f"c{number}") for number in numbers],
    "deposit": lambda numbers: [Deposit(allocation=1, amount=SuMinutes(1)) for _ in numbers],
}


def test_a_batch_of_a_hundred_takes_as_many_statements_as_one(
    seen: Statements, sql_place: Place
) -> None:
    store = sql_place.open()
    fill(store)
    for kind, batch in BATCHES.items():
        granted(store, *batch(range(1, 3)))  # whatever is done once only
        taken(seen)
        granted(store, *batch(range(3, 4)))
        one = taken(seen)
        granted(store, *batch(range(4, 104)))
        assert taken(seen) == one <= {"hold": 9, "charge": 9, "deposit": 6}[kind], kind


def test_what_comes_again_takes_one_statement_more_however_much_of_it_there_is(
    seen: Statements, sql_place: Place
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
        taken(seen)
        first.append(granted(store, *batch))
        assert taken(seen) <= 9
    assert all(each.again for batch in first for each in batch)


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
        ("entry_before", (1, Instant(START + 1))),
        (
            "usage",
            (UsageQuery(visibility=SIGHT, resource="cpu"), UsageBy.MONTH, GroupPage(5, "2026-01")),
        ),
        ("usage", (UsageQuery(visibility=SIGHT), UsageBy.PARTITION, GroupPage(5, "a"))),
        ("members", (1, PAGE)),
        ("memberships", (ALICE,)),
        ("overdue_runs", (START, 10)),
        ("expired_allocations", (START, 10)),
        ("registry", ()),
        ("tokens", (ALICE, PAGE)),
        ("token", (b"digest",)),
    ],
)
def test_a_question_is_one_statement(
    seen: Statements, sql_place: Place, question: str, about: tuple[Any, ...]
) -> None:
    store = sql_place.open()
    fill(store)
    granted(store, hold(1, 5))
    look = Look(store)
    getattr(look, question)(*about)
    taken(seen)
    getattr(look, question)(*about)
    assert taken(seen) == 1


def test_counting_a_whole_table_may_take_its_time_first(seen: Statements, sql_place: Place) -> None:
    look = Look(sql_place.open())
    taken(seen)
    look.count_entries()
    assert taken(seen) == (2 if sql_place.is_postgres else 1)
