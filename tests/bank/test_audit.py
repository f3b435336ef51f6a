"""The audit finds any altered, missing or added entry and row, and nothing in an unchanged
journal.
"""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.audit import Finding, Fold
from fairbank.bank.entry import Entry, Kind, facts_of, link_of
from fairbank.bank.run import UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.units import SuMinutes
from tests.bank import checks
from tests.bank.checks import books_of
from tests.bank.story import Teller, tell


def findings(work: TransactionData, journal: list[Entry]) -> list[Finding]:
    """Return the findings, after checking that they do not depend on when rows of runs are
    shown.
    """
    soon, late = (checks.findings(work, journal, soon=soon) for soon in (True, False))
    assert {each.book for each in soon} == {each.book for each in late}
    return soon


def altered(told: Teller, journal: list[Entry]) -> list[str]:
    return [each.what for each in findings(told.work, journal)]


OTHER: dict[type, Any] = {int: 7_777, str: "other", bytes: b"\1" * 32, type(None): 7_777}


def other(field: str, value: Any) -> Any:
    """Return another value that the field may have."""
    if isinstance(value, Kind):
        return Kind.NOTE if value is not Kind.NOTE else Kind.DEPOSIT
    if field in ("key", "comment", "details") and value is None:
        return "{}"
    return OTHER[type(value)]


def test_audit_finds_nothing_in_an_unchanged_journal(told: Teller) -> None:
    assert {entry.kind for entry in told.work.entries} == set(Kind) - {Kind.NOTE}
    assert findings(told.work, told.work.entries) == []


@given(st.data())
def test_any_altered_field_of_any_entry_is_found(told: Teller, data: st.DataObject) -> None:
    journal = list(told.work.entries)
    place = data.draw(st.integers(0, len(journal) - 1))
    field = data.draw(st.sampled_from(journal[place].__struct_fields__))
    journal[place] = msgspec.structs.replace(
        journal[place], **{field: other(field, getattr(journal[place], field))}
    )
    found = findings(told.work, journal)
    assert found
    assert any(each.book in (journal[place].book, told.work.entries[place].book) for each in found)


def test_any_missing_entry_is_found(told: Teller) -> None:
    for place in range(len(told.work.entries)):
        journal = list(told.work.entries)
        gone = journal.pop(place)
        found = altered(told, journal)
        assert any("missing" in each or "added" in each or "altered" in each for each in found), (
            gone
        )


def test_any_entry_written_twice_is_found(told: Teller) -> None:
    for place, entry in enumerate(told.work.entries):
        journal = list(told.work.entries)
        journal.insert(place, entry)
        assert any("entries are missing or were added" in each for each in altered(told, journal))


def test_two_entries_that_changed_places_are_found(told: Teller) -> None:
    lines = books_of(told.work.entries)[told.cast.allocations["physics/cpu"]]
    for place in range(len(lines) - 1):
        turned = [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]
        rest = [entry for entry in told.work.entries if entry.book != lines[0].book]
        assert findings(told.work, rest + turned)


def test_an_entry_added_with_a_fitting_link_is_found_by_the_row(told: Teller) -> None:
    number = told.cast.allocations["physics/cpu:next"]
    last = books_of(told.work.entries)[number][-1]
    forged = msgspec.structs.replace(
        last,
        id=9_999,
        seq=last.seq + 1,
        kind=Kind.DEPOSIT,
        amount=600,
        deposited=last.deposited + 600,
        details=None,
    )
    forged = msgspec.structs.replace(forged, link=link_of(forged, last.link))
    found = altered(told, [*told.work.entries, forged])
    assert len(found) == 1
    assert "its row was altered" in found[0]


ROWS = ["allocations", "runs", "users", "projects", "members", "tokens"]


def field_values(row: Any) -> list[tuple[str, Any]]:
    """Each field of a row with another value of its kind."""
    values: list[tuple[str, Any]] = []
    for field in row.__struct_fields__:
        value = getattr(row, field)
        match value:
            case bool():
                values.append((field, not value))
            case int() | None:
                values.append((field, 4_321))
            case str():
                values.append((field, "other"))
            case bytes():
                values.append((field, b"\2" * 32))
            case JobDetails():
                altered = [
                    msgspec.structs.replace(value, **{name: other})
                    for name, other in field_values(value)
                ]
                values += [(field, each) for each in (None, *altered)]
            case Run():
                values.append((field, value._replace(job_id=99)))
            case tuple():
                values.append((field, (*value, "write")))
            case _:
                values.append((field, next(each for each in type(value) if each is not value)))
    return values


@pytest.mark.parametrize("table", ROWS)
def test_any_altered_row_is_found(told: Teller, table: str) -> None:
    rows = getattr(told.work, table)
    for where, row in list(rows.items()):
        for field, value in field_values(row):
            rows[where] = msgspec.structs.replace(row, **{field: value})
            assert findings(told.work, told.work.entries), f"{table} {where} {field}"
        rows[where] = row
    assert findings(told.work, told.work.entries) == []


@pytest.mark.parametrize("table", ROWS)
def test_any_missing_row_is_found(told: Teller, table: str) -> None:
    rows = getattr(told.work, table)
    for where, row in list(rows.items()):
        del rows[where]
        missing = findings(told.work, told.work.entries)
        rows[where] = row
        assert missing or row == UserSums(), (
            f"{table} {where}"
        )  # a user who drew nothing needs no row


def test_an_added_row_is_found(told: Teller) -> None:
    work = told.work
    run = next(iter(work.runs.values()))
    project, member = work.projects[1], next(iter(work.members.values()))
    added: list[tuple[Any, Any, Any]] = [
        (work.allocations, 99, msgspec.structs.replace(work.allocations[1], id=99)),
        (work.runs, run.run._replace(job_id=99), msgspec.structs.replace(run, id=9_999)),
        (work.users, (1, 4_321), UserSums(SuMinutes(0), SuMinutes(0), SuMinutes(600))),
        (work.projects, 99, msgspec.structs.replace(project, id=99)),
        (work.tokens, 99, msgspec.structs.replace(work.tokens[1], id=99, digest=b"\3" * 32)),
        (work.members, (1, 4_321), msgspec.structs.replace(member, uid=4_321)),
    ]
    for rows, where, row in added:
        rows[where] = row
        found = findings(work, work.entries)
        del rows[where]
        assert found, row


def test_unreadable_details_are_a_finding(told: Teller) -> None:
    for place, entry in enumerate(told.work.entries):
        for rubbish in ("", "{", "[]", "7", "null", "{}", '{"run":7}'):
            journal = list(told.work.entries)
            journal[place] = msgspec.structs.replace(entry, details=rubbish)
            assert findings(told.work, journal)


def test_number_beyond_a_column_is_a_finding(told: Teller) -> None:
    place, entry = next(
        (place, each) for place, each in enumerate(told.work.entries) if each.kind is Kind.CHARGE
    )
    journal = list(told.work.entries)
    journal[place] = msgspec.structs.replace(
        entry, details=json.dumps(facts_of(entry) | {"elapsed_seconds": 10**30})
    )
    assert any("elapsed is" in each and f"due {10**30}" in each for each in altered(told, journal))


@pytest.mark.parametrize("soon", [True, False])
def test_audit_forgets_closed_runs_that_match(*, soon: bool) -> None:
    """A book may have millions. Their rows are shown as each is opened, or once it is over."""
    told = tell("project physics\n open physics/cpu 0..1000 with 100000")
    for number in range(1, 121):
        told.play(f"hold {number} alice physics/cpu 60")
        told.play(f"charge {number} 45")
    rows = {each.id: each for each in told.work.runs.values()}
    book = books_of(told.work.entries)[told.cast.allocations["physics/cpu"]]
    fold = Fold(book[0].book)
    tracemalloc.start()
    try:
        for entry in book:
            if soon and entry.run == entry.id:
                fold.check_run(rows[entry.id])
            fold.add(entry)
            if not soon and entry.kind is Kind.CHARGE:
                fold.check_run(rows[entry.run or 0])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / 120 < 30
    fold.check_left_over()
    assert not [each for each in fold.findings if "run" in each.what]


# --- tokens ---


def test_removed_revocation_is_found(told: Teller) -> None:
    laptop = told.work.tokens[1]
    assert laptop.revoked is not None
    told.work.tokens[1] = msgspec.structs.replace(laptop, revoked=None)
    assert altered(told, told.work.entries) == [
        "the row of token 1 was altered: revoked is nothing, due 1970-01-01T00:00:00Z"
    ]
    told.work.tokens[1] = laptop


def test_the_journal_holds_the_digest_of_a_secret() -> None:
    told = tell("token laptop alice")
    (entry,) = told.work.entries
    assert (entry.kind, entry.book, entry.owner) == (Kind.TOKEN, 0, 1001)
    assert msgspec.json.decode(entry.details or "") == {
        "token": 1,
        "digest": b"laptop".hex(),
        "uid": 1001,
        "parent": None,
        "label": "laptop",
        "scopes": ["read"],
        "created": 0,
        "expires": 1000,
        "revoked": None,
    }
