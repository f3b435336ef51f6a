"""Audit by several processes: it finds what the audit by one process finds."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fairbank.bank.audit import Head
from fairbank.bank.entry import REGISTRY
from fairbank.bank.query import ALL_JOURNALS, JournalRange
from fairbank.core.errors import Unavailable
from fairbank.core.units import SUM_MAX
from fairbank.service.ops.audit import Audit, AuditResult
from fairbank.service.ops.audit_processes import split_journals, verify
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.conftest import (
    migrated_file,
    reused15,
    reused18,
    sql_place,
    template15,
    template18,
)
from tests.contracts.databases import Place
from tests.contracts.small_site import allocation, charge, fill, granted, hold, job
from tests.support.conditions import wait_until

__all__ = ["migrated_file", "reused15", "reused18", "sql_place", "template15", "template18"]

LINK = bytes(32)


@pytest.fixture
def place(sql_place: Place) -> Place:
    """Write a ledger with four allocations, and runs in two of them."""
    store = sql_place.open()
    fill(store)
    granted(store, allocation(1, 5, resource="gpu"), allocation(2, 5, resource="gpu"))
    granted(store, hold(1, 60), hold(2, 30, project=2))
    granted(store, charge(1, 55))
    return sql_place


def heads_with_entries(*entries: int) -> list[Head]:
    return [Head(journal, seq, LINK) for journal, seq in enumerate(entries)]


@pytest.mark.parametrize(
    "heads",
    [
        heads_with_entries(),
        heads_with_entries(0),
        heads_with_entries(5),
        heads_with_entries(2, 9, 1, 1, 1, 30, 0, 4),
        heads_with_entries(*[1] * 50),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_every_chain_is_in_one_range(heads: list[Head], pieces: int) -> None:
    stretches = list(split_journals(heads, pieces, 1))
    for journal in (-SUM_MAX, -1, REGISTRY, 1, 2, 3, 10, 49, 50, 51, SUM_MAX):
        assert sum(journal in part for part in stretches) == 1


def test_ranges_have_about_equal_lengths() -> None:
    assert list(split_journals(heads_with_entries(2, 9, 1, 1, 1, 30, 0, 4), 4, 1)) == [
        JournalRange(None, 3),
        JournalRange(3, 6),
        JournalRange(6, None),
    ]


def test_short_journal_is_one_range() -> None:
    assert list(split_journals(heads_with_entries(2, 9, 1), 8, 100)) == [ALL_JOURNALS]


def verify_with_two_processes(
    store: Store, place: Place, heads: dict[int, Head], progress: list[tuple[int, int]]
) -> AuditResult:
    return verify(
        store,
        partial(open_store, place.url),
        heads,
        lambda done, of: progress.append((done, of)),
        jobs=2,
        entries_min=1,
    )


def test_altered_run_rows_are_found_one_by_one(place: Place) -> None:
    store = place.open()
    granted(store, *(hold(number, 10) for number in range(11, 15)))
    granted(store, *(charge(number, 5) for number in (11, 12, 14)))
    first, second, third, _ = (
        row[0] for row in place.run("SELECT id FROM run WHERE job_id > 10 ORDER BY id")
    )
    place.run(f"UPDATE run SET id = {-first} WHERE id = {first}")
    place.run(f"UPDATE run SET charged = 6 WHERE id = {second}")
    place.run(f"UPDATE run SET state = 'released', held = 0, ended_at = 5 WHERE id = {third}")
    verdict = Audit(store).verify()
    assert verdict.runs == 6
    assert [finding.what.partition(": ")[0] for finding in verdict.findings] == [
        f"the row of run {job(11)} was added",
        f"the row of run {job(11)} is missing",
        f"the row of run {job(12)} was altered",
        f"the row of run {job(13)} was altered",
    ]


def test_two_processes_have_the_findings_of_one(place: Place) -> None:
    store = place.open()
    heads = {head.allocation: head for head in Audit(store).journal_heads()}
    output: list[tuple[int, int]] = []
    assert verify_with_two_processes(store, place, heads, output) == Audit(store).verify(heads)
    assert output[-1] == (store_entries(store), store_entries(store))
    assert len(output) > 2

    place.run("UPDATE allocation SET held = 31 WHERE id = 2")
    place.run("UPDATE run SET allocation = 9 WHERE allocation = 1")
    if place.is_postgres:
        place.run("ALTER TABLE user_sum DISABLE TRIGGER ALL")  # foreign keys included
    place.run("INSERT INTO user_sum VALUES (-4, 1001, 5, 0, NULL)")
    heads |= {3: Head(3, 9, LINK), 77: Head(77, 1, LINK)}
    result = Audit(store).verify(heads)
    assert {finding.journal for finding in result.findings} == {-4, 1, 2, 3, 9, 77}
    assert verify_with_two_processes(store, place, heads, output) == result


def test_unreadable_value_is_a_finding(place: Place) -> None:
    if place.is_postgres:
        pytest.skip("columns have types there")
    place.run("UPDATE allocation SET seq = 'many' WHERE id = 2")
    store = place.open()
    (finding,) = verify_with_two_processes(store, place, {}, []).findings
    assert finding.journal == 2
    assert "the number of its last entry is 'many', due 3" in finding.what


def test_killed_process_ends_the_audit_with_a_remedy(place: Place) -> None:
    with pytest.raises(Unavailable, match="ended from outside"):
        verify(place.open(), partial(os._exit, 3), {}, jobs=2, entries_min=1)


def store_entries(store: Store) -> int:
    with store.reading() as reader:
        return reader.count_entries()


SLOW_AUDIT = """
import os, signal
from fairbank.service.ops.audit_processes import verify
from fairbank.store.factory import open_store

class Slow:
    def __call__(self):
        print(os.getpid(), flush=True)
        signal.pause()

if __name__ == "__main__":
    verify(open_store({url!r}), Slow(), {{}}, jobs=2, entries_min=1)
"""


def test_no_process_outlives_a_killed_audit(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "audit.py"
    script.write_text(SLOW_AUDIT.format(url=place.url))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as audit:
        assert audit.stdout is not None
        worker = int(audit.stdout.readline())
        audit.kill()
    wait_until(
        lambda: not Path(f"/proc/{worker}").exists(),
        "the end of the process that read for the audit",
    )


def test_unreadable_entry_is_named_with_its_allocation_and_field(place: Place) -> None:
    if place.is_postgres:
        pytest.skip("columns have types there")
    place.run("DROP TRIGGER journal_only_grows")
    place.run(
        "UPDATE journal SET amount = 'abc'"
        " WHERE id = (SELECT max(id) FROM journal WHERE allocation = 1)"
    )
    (result,) = Audit(place.open()).verify().findings
    assert result.journal is None
    assert result.what.startswith("a row cannot be read, so the audit ends here: entry ")
    assert result.what.endswith(" of allocation 1 cannot be read: its amount is 'abc'")


@pytest.mark.parametrize("journal", [0, 1])
def test_truncated_journal_is_reported(place: Place, journal: int) -> None:
    if place.is_postgres:
        place.run("ALTER TABLE journal DISABLE TRIGGER ALL")
    else:
        place.run("DROP TRIGGER journal_stays")
    place.run(
        f"DELETE FROM journal WHERE id = (SELECT max(id) FROM journal WHERE allocation = {journal})"
    )
    assert [
        finding.journal
        for finding in Audit(place.open()).verify().findings
        if "may have been cut at its end" in finding.what
    ] == [journal]


def test_heads_saved_before_the_first_entry_agree() -> None:
    audit = Audit(MemoryStore())
    heads = {head.allocation: head for head in audit.journal_heads()}
    assert audit.verify(heads).findings == ()
