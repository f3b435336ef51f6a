"""Manual edits of the tables, with triggers disabled: the audit finds and locates each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import psycopg
import pytest

from fairbank.bank.entry import REGISTRY, Kind
from fairbank.service.ops.audit import Audit
from fairbank.service.ops.audit_processes import verify
from fairbank.store import schema
from fairbank.store.contract import Store
from fairbank.store.factory import open_store
from tests.faults.forgeries import (
    KEYS,
    Forgery,
    additions,
    alterations,
    cut_registry,
    cut_tail,
    deletions,
    insert,
    nonsense,
    rewrite,
    rewrite_transfer,
)
from tests.faults.in_process import store_at
from tests.faults.ledger_tables import LedgerTables, Row
from tests.faults.sample import write_sample
from tests.support.figures import LogFigure
from tests.support.postgres import PostgresServer
from tests.support.server import create_bank


@dataclass(frozen=True)
class Sample:
    """Sample ledger, and the store through which it is audited repeatedly."""

    tables: LedgerTables
    store: Store

    def journals_with_findings(self) -> set[int | None]:
        """Return the journals in which the audit finds something."""
        return {finding.journal for finding in Audit(self.store).verify().findings}

    def rows(self, table: str) -> list[Row]:
        return self.tables.rows(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}")

    def sample_rows(self, table: str) -> list[Row]:
        """Return an entry of each kind of the journal, or all rows of another table; on PostgreSQL,
        which is slower, only two.
        """
        rows = list(
            {row.get("kind", number): row for number, row in enumerate(self.rows(table))}.values()
        )
        return rows if self.tables.is_sqlite else rows[-2:]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sample]:
    """Provide a sample ledger on each store."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/fairbank.sqlite"
        else:
            server: PostgresServer = request.getfixturevalue("postgres18")
            url = server.url(stack.enter_context(server.fresh_database()))
        write_sample(url)
        sample = Sample(LedgerTables(url), stack.enter_context(store_at(url)))
        assert {row["kind"] for row in sample.rows("journal")} == {kind.value for kind in Kind}
        assert sample.journals_with_findings() == set()
        yield sample


def check_forgeries(
    sample: Sample, log_figure: LogFigure, forgeries: Callable[[str], Iterable[Forgery]]
) -> None:
    """Check that the audit finds each edit in its journal, and nothing after it is reverted."""
    missed: list[str] = []
    tally: Counter[str] = Counter()
    for table in KEYS:
        for forgery in forgeries(table):
            try:
                forgery.do(sample.tables)
            except psycopg.IntegrityError:  # PostgreSQL enforces its constraints
                tally["refused by the database"] += 1
                continue
            found_journals = sample.journals_with_findings()
            if not found_journals & forgery.journals:
                missed.append(f"{forgery.description}: found in {found_journals}")
            forgery.undo(sample.tables)
            tally[table] += 1
    log_figure(f"{tally.total()} forgeries: {dict(tally)}")
    assert missed == []
    assert sample.journals_with_findings() == set()


def test_every_table_of_the_ledger_is_edited() -> None:
    """Fair-share values come from Slurm and are not in the journal, so the audit cannot check
    them. Sums of usage are not part of the ledger: they are made from it, and are compared with it
    as far as they go (`test_altered_sums_of_usage_are_found`).
    """
    others = {"nonce", "share_figure", "usage_sum", "usage_head"}
    assert set(KEYS) == set(schema.metadata.tables) - others


@pytest.mark.slow
def test_edit_of_every_column_is_found(sample: Sample, log_figure: LogFigure) -> None:
    check_forgeries(sample, log_figure, lambda table: alterations(table, sample.sample_rows(table)))


@pytest.mark.slow
def test_deleted_and_added_rows_are_found(sample: Sample, log_figure: LogFigure) -> None:
    check_forgeries(
        sample,
        log_figure,
        lambda table: [
            *deletions(table, sample.sample_rows(table)),
            *additions(table, sample.sample_rows(table)),
        ],
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
def test_edit_of_every_column_in_every_row_is_found(sample: Sample, log_figure: LogFigure) -> None:
    check_forgeries(sample, log_figure, lambda table: alterations(table, sample.rows(table)))


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
def test_deletion_and_copy_of_every_row_are_found(sample: Sample, log_figure: LogFigure) -> None:
    check_forgeries(
        sample,
        log_figure,
        lambda table: [
            *deletions(table, sample.rows(table)),
            *additions(table, sample.rows(table)),
        ],
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("long_form")
def test_values_of_other_types_in_sqlite_are_found(sample: Sample, log_figure: LogFigure) -> None:
    """The journal is not always named: an unreadable row has none."""
    if not sample.tables.is_sqlite:
        pytest.skip("PostgreSQL's columns accept only values of their type")
    check_forgeries(
        sample,
        log_figure,
        lambda table: (
            replace(forgery, journals=forgery.journals | {None})
            for forgery in nonsense(table, sample.sample_rows(table))
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 32])
def test_altered_sums_of_usage_are_found(sample: Sample, days: int) -> None:
    while sample.store.fold_usage():
        pass
    assert sample.journals_with_findings() == set()
    (row, *_) = sample.tables.rows("SELECT * FROM usage_sum WHERE days = :days", days=days)
    change = "UPDATE usage_sum SET charged = charged + :more WHERE days = :days"
    sample.tables.change(f"{change} AND allocation = :at", more=1, days=days, at=row["allocation"])
    assert sample.journals_with_findings() == {row["allocation"]}
    for table in ("usage_sum", "usage_head"):
        sample.tables.change(f"DELETE FROM {table}")
    assert sample.journals_with_findings() == set()


@pytest.mark.slow
def test_emptied_journal_is_found(sample: Sample) -> None:
    """The registry's rows have nothing to be compared with; allocations lack their opening
    entry.
    """
    kept = sample.rows("journal")
    for journal in (0, 1, 2):
        sample.tables.change("DELETE FROM journal WHERE allocation = :journal", journal=journal)
        assert journal in sample.journals_with_findings()
        for entry in kept:
            if entry["allocation"] == journal:
                insert(sample.tables, "journal", entry)
    assert sample.journals_with_findings() == set()


@pytest.mark.slow
def test_reactivated_token_is_found(sample: Sample) -> None:
    (revoked,) = [row for row in sample.rows("token") if row["revoked_at"] is not None]
    for change in (
        "revoked_at = NULL",
        "revoked_at = revoked_at + 1000000",
        "expires_at = expires_at + 86400",
        "scopes = 'read  write'",
    ):
        sample.tables.change(f"UPDATE token SET {change} WHERE id = :id", id=revoked["id"])
        assert sample.journals_with_findings() == {REGISTRY}, change
        sample.tables.change("DELETE FROM token WHERE id = :id", id=revoked["id"])
        assert sample.journals_with_findings() == {REGISTRY}
        insert(sample.tables, "token", revoked)
    assert sample.journals_with_findings() == set()


@pytest.mark.slow
def test_user_sums_without_allocation_are_found(sample: Sample) -> None:
    """The sums of a user are moved to an allocation that never existed, below the own one."""
    for allocation in (-5, 0):
        sample.tables.change(
            "UPDATE user_sum SET allocation = :new WHERE allocation = 1", new=allocation
        )
        assert {1, allocation} <= sample.journals_with_findings()
        sample.tables.change(
            "UPDATE user_sum SET allocation = 1 WHERE allocation = :new", new=allocation
        )
    assert sample.journals_with_findings() == set()


# --- saved heads, and the command ---

FORGED = [
    (cut_tail, 2, "allocation 2"),
    (rewrite, 1, "allocation 1"),
    (cut_registry, REGISTRY, "the registry"),
]


@pytest.mark.slow
def test_consistent_forgery_is_found_by_saved_heads(sample: Sample) -> None:
    audit = Audit(sample.store)
    heads = {head.allocation: head for head in audit.journal_heads()}
    for forge, journal, _ in FORGED:
        undo = forge(sample.tables)
        assert audit.verify().findings == (), f"{forge.__name__} is not a consistent forgery"
        assert {finding.journal for finding in audit.verify(heads).findings} == {journal}
        undo()
    assert audit.verify(heads).findings == ()


def test_transfer_whose_halves_differ_is_found(sample: Sample) -> None:
    """Each journal follows from its own entries, but the two do not agree."""
    undo = rewrite_transfer(sample.tables)
    reopen = partial(open_store, sample.tables.url)
    for findings in (
        Audit(sample.store).verify().findings,
        verify(sample.store, reopen, {}, jobs=2, entries_min=1).findings,
    ):
        assert {finding.journal for finding in findings} == {None}
        assert [finding.what.split(" at ")[0] for finding in findings] == [
            f"only one half of the transfer of {amount} SU-minutes from allocation 1 to"
            " allocation 2"
            for amount in (600, 700)
        ]
    undo()
    assert sample.journals_with_findings() == set()


@pytest.mark.slow
@pytest.mark.parametrize(("forge", "journal", "name"), FORGED[:2])
def test_audit_command_exits_with_8_and_names_the_journal(
    forge: Callable[[LedgerTables], object], journal: int, name: str
) -> None:
    with create_bank() as bank:
        write_sample(bank.store)
        heads = bank.folder / "monday.heads"
        heads.write_text(bank.command("audit", "heads").stdout)
        forge(LedgerTables(bank.store))
        result = bank.command("audit", "verify", "--heads", str(heads))
        assert (result.returncode, f"x {name}" in result.stdout) == (8, True), result.stdout


@pytest.mark.slow
def test_audit_command_names_the_altered_column(database: str) -> None:
    with create_bank(database) as bank:
        write_sample(bank.store)
        LedgerTables(bank.store).change(
            "UPDATE allocation SET deposited = deposited + 1 WHERE id = 2"
        )
        result = bank.command("audit", "verify")
        assert result.returncode == 8
        assert "x allocation 2: its row was altered: deposited is" in result.stdout
