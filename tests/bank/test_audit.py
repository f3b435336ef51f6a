"""The audit finds any altered, missing or added entry and row, and nothing in an unchanged
journal.
"""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.audit import Finding, Fold
from fairbank.bank.entry import Entry, Kind, facts_of, link_of
from fairbank.bank.run import ReportedRun, UserSums
from fairbank.bank.transaction_data import TransactionData
from fairbank.cluster.job import Run
from fairbank.core.units import SuMinutes
from tests.bank import checks
from tests.bank.checks import entries_by_allocation
from tests.bank.stories import StoryRunner, play_story


def findings(work: TransactionData, journal: list[Entry]) -> list[Finding]:
    """Return the findings, after checking that they do not depend on when rows of runs are
    shown.
    """
    soon, late = (checks.findings(work, journal, soon=soon) for soon in (True, False))
    assert {finding.journal for finding in soon} == {finding.journal for finding in late}
    return soon


def altered(story: StoryRunner, journal: list[Entry]) -> list[str]:
    return [finding.what for finding in findings(story.work, journal)]


OTHER: dict[type, Any] = {int: 7_777, str: "other", bytes: b"\1" * 32, type(None): 7_777}


def other(field: str, value: Any) -> Any:
    """Return another value for the field."""
    if isinstance(value, Kind):
        return Kind.NOTE if value is not Kind.NOTE else Kind.DEPOSIT
    if field in ("key", "comment", "details") and value is None:
        return "{}"
    return OTHER[type(value)]


def test_audit_finds_nothing_in_an_unchanged_journal(story: StoryRunner) -> None:
    assert {entry.kind for entry in story.work.entries} == set(Kind) - {Kind.NOTE}
    assert findings(story.work, story.work.entries) == []


@given(st.data())
def test_any_altered_field_of_any_entry_is_found(story: StoryRunner, data: st.DataObject) -> None:
    journal = list(story.work.entries)
    place = data.draw(st.integers(0, len(journal) - 1))
    field = data.draw(st.sampled_from(journal[place].__struct_fields__))
    journal[place] = msgspec.structs.replace(
        journal[place], **{field: other(field, getattr(journal[place], field))}
    )
    differences = findings(story.work, journal)
    assert any(
        difference.journal in (journal[place].allocation, story.work.entries[place].allocation)
        for difference in differences
    )


def test_any_missing_entry_is_found(story: StoryRunner) -> None:
    for place in range(len(story.work.entries)):
        journal = list(story.work.entries)
        gone = journal.pop(place)
        result = altered(story, journal)
        assert any("missing" in text or "added" in text or "altered" in text for text in result), (
            gone
        )


def test_any_entry_written_twice_is_found(story: StoryRunner) -> None:
    for place, entry in enumerate(story.work.entries):
        journal = list(story.work.entries)
        journal.insert(place, entry)
        assert any("entries are missing or were added" in text for text in altered(story, journal))


def test_swapped_entries_are_found(story: StoryRunner) -> None:
    lines = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    for place in range(len(lines) - 1):
        turned = [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]
        rest = [entry for entry in story.work.entries if entry.allocation != lines[0].allocation]
        expected = f"after entry number {place} comes {place + 2}: "
        assert any(text.startswith(expected) for text in altered(story, rest + turned))


def test_added_entry_with_valid_link_is_found_by_the_row(story: StoryRunner) -> None:
    number = story.names.allocations["physics/cpu:next"]
    last = entries_by_allocation(story.work.entries)[number][-1]
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
    result = altered(story, [*story.work.entries, forged])
    assert len(result) == 1
    assert "its row was altered" in result[0]


ROWS = ["allocations", "runs", "users", "projects", "members", "tokens"]


CHANGED = re.compile(r" was altered: | was added: |^no entry opens it| (is|are) missing$")


def field_values(row: Any) -> list[tuple[str, Any]]:
    """Yield each field of a row with another value of its kind."""
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
            case msgspec.Struct():
                values += [
                    (field, msgspec.structs.replace(value, **{name: other}))
                    for name, other in field_values(value)
                ]
                if not isinstance(value, ReportedRun):
                    values.append((field, None))
            case Run():
                values.append((field, value._replace(job_id=99)))
            case tuple():
                values.append((field, (*value, "write")))
            case _:
                values.append(
                    (field, next(member for member in type(value) if member is not value))
                )
    return values


@pytest.mark.parametrize("table", ROWS)
def test_any_altered_row_is_found(story: StoryRunner, table: str) -> None:
    rows = getattr(story.work, table)
    for where, row in list(rows.items()):
        for field, value in field_values(row):
            rows[where] = msgspec.structs.replace(row, **{field: value})
            output = altered(story, story.work.entries)
            assert any(CHANGED.search(text) for text in output), f"{table} {where} {field}"
        rows[where] = row
    assert findings(story.work, story.work.entries) == []


@pytest.mark.parametrize("table", ROWS)
def test_any_missing_row_is_found(story: StoryRunner, table: str) -> None:
    rows = getattr(story.work, table)
    for where, row in list(rows.items()):
        del rows[where]
        output = altered(story, story.work.entries)
        rows[where] = row
        is_found = any(CHANGED.search(text) for text in output)
        # A user who drew nothing needs no row.
        assert is_found == (row != UserSums()), f"{table} {where}"


def test_added_row_is_found(story: StoryRunner) -> None:
    work = story.work
    run = next(iter(work.runs.values()))
    project, member = work.projects[1], next(iter(work.members.values()))
    unknown = "was added: the journal knows nothing of it"
    added: list[tuple[Any, Any, Any]] = [
        (work.allocations, 99, msgspec.structs.replace(work.allocations[1], id=99)),
        (work.runs, run.reported.run._replace(job_id=99), msgspec.structs.replace(run, id=9_999)),
        (work.users, (1, 4_321), UserSums(SuMinutes(0), SuMinutes(0), SuMinutes(600))),
        (work.projects, 99, msgspec.structs.replace(project, id=99)),
        (work.tokens, 99, msgspec.structs.replace(work.tokens[1], id=99, digest=b"\3" * 32)),
        (work.members, (1, 4_321), msgspec.structs.replace(member, uid=4_321)),
    ]
    for rows, where, row in added:
        rows[where] = row
        (text,) = altered(story, work.entries)
        del rows[where]
        expected = "no entry opens it" if rows is work.allocations else unknown
        assert text.endswith(expected), row


def test_unreadable_details_are_a_finding(story: StoryRunner) -> None:
    for place, entry in enumerate(story.work.entries):
        for rubbish in ("", "{", "[]", "7", "null", "{}", '{"run":7}'):
            journal = list(story.work.entries)
            journal[place] = msgspec.structs.replace(entry, details=rubbish)
            texts = altered(story, journal)
            assert texts[0].startswith("it is not what was written: "), texts


def test_number_beyond_a_column_is_a_finding(story: StoryRunner) -> None:
    place, entry = next(
        (place, entry)
        for place, entry in enumerate(story.work.entries)
        if entry.kind is Kind.CHARGE
    )
    journal = list(story.work.entries)
    journal[place] = msgspec.structs.replace(
        entry, details=json.dumps(facts_of(entry) | {"elapsed_seconds": 10**30})
    )
    assert any("elapsed is" in text and f"due {10**30}" in text for text in altered(story, journal))


@pytest.mark.parametrize("soon", [True, False])
def test_audit_forgets_closed_runs_that_match(*, soon: bool) -> None:
    """An allocation may have millions of runs. Matching rows of closed runs are dropped from
    memory.
    """
    story = play_story("project physics\n open physics/cpu 0..1000 with 100000")
    for number in range(1, 121):
        story.play(f"hold {number} alice physics/cpu 60")
        story.play(f"charge {number} 45")
    rows = {run.id: run for run in story.work.runs.values()}
    journal = entries_by_allocation(story.work.entries)[story.names.allocations["physics/cpu"]]
    fold = Fold(journal[0].allocation)
    tracemalloc.start()
    try:
        for entry in journal:
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
    assert not [finding for finding in fold.findings if "run" in finding.what]


# --- tokens ---


def test_removed_revocation_is_found(story: StoryRunner) -> None:
    laptop = story.work.tokens[1]
    assert laptop.revoked is not None
    story.work.tokens[1] = msgspec.structs.replace(laptop, revoked=None)
    assert altered(story, story.work.entries) == [
        "the row of token 1 was altered: revoked is nothing, due 1970-01-01T00:00:00Z"
    ]
    story.work.tokens[1] = laptop


def test_journal_has_only_the_digest_of_a_secret() -> None:
    story = play_story("token laptop alice")
    (entry,) = story.work.entries
    assert (entry.kind, entry.allocation, entry.owner) == (Kind.TOKEN, 0, 1001)
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
