"""Manual edits of the tables, past the bank and its triggers: the audit finds each and names the
book.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import psycopg
import pytest

from fairbank.bank.entry import REGISTRY, Kind
from fairbank.service.ops.audit import Audit
from fairbank.store import schema
from fairbank.store.contract import Store
from tests.faults.audit_runs import store_at
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
)
from tests.faults.sample import write_sample
from tests.faults.tables import Books, Row
from tests.support.postgres import PostgresServer
from tests.support.server import made

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """Sample books, and the store through which they are audited again and again."""

    books: Books
    store: Store

    def found(self) -> set[int | None]:
        """In which books the audit finds something."""
        return {each.book for each in Audit(self.store).verify().findings}

    def rows(self, table: str) -> list[Row]:
        return self.books.rows(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}")

    def some(self, table: str) -> list[Row]:
        """Of the journal an entry of each kind, else every row; on PostgreSQL, which is slower,
        only two of them.
        """
        found = list(
            {row.get("kind", number): row for number, row in enumerate(self.rows(table))}.values()
        )
        return found if self.books.is_sqlite else found[-2:]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sample]:
    """Sample books on either store."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('books')}/fairbank.sqlite"
        else:
            server: PostgresServer = request.getfixturevalue("postgres18")
            url = server.url(stack.enter_context(server.fresh_database()))
        write_sample(url)
        sample = Sample(Books(url), stack.enter_context(store_at(url)))
        assert {row["kind"] for row in sample.rows("journal")} == {each.value for each in Kind}
        assert sample.found() == set()
        yield sample


def tried(sample: Sample, tell: Tell, forgeries: Callable[[str], Iterable[Forgery]]) -> None:
    """Each one alone is found, in the book where it was done; taken back, there is nothing
    to find.
    """
    missed: list[str] = []
    tally: Counter[str] = Counter()
    for table in KEYS:
        for each in forgeries(table):
            try:
                each.do(sample.books)
            except psycopg.IntegrityError:  # PostgreSQL lets nobody past its rules
                tally["refused by the database"] += 1
                continue
            found = sample.found()
            if not found & each.books:
                missed.append(f"{each.what}: found in {found}")
            each.undo(sample.books)
            tally[table] += 1
    tell(f"{tally.total()} forgeries: {dict(tally)}")
    assert missed == []
    assert sample.found() == set()


def test_no_table_of_the_ledger_is_left_out() -> None:
    """Figures of fair share are Slurm's, kept for plots: no journal tells them, so no audit can say
    more of them.
    """
    assert set(KEYS) == set(schema.metadata.tables) - {"nonce", "share_figure"}


@pytest.mark.slow
def test_every_column(sample: Sample, tell: Tell) -> None:
    tried(sample, tell, lambda table: alterations(table, sample.some(table)))


@pytest.mark.slow
def test_a_row_deleted_and_a_row_added(sample: Sample, tell: Tell) -> None:
    tried(
        sample,
        tell,
        lambda table: [
            *deletions(table, sample.some(table)),
            *additions(table, sample.some(table)),
        ],
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
def test_every_column_of_every_row(sample: Sample, tell: Tell) -> None:
    tried(sample, tell, lambda table: alterations(table, sample.rows(table)))


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
def test_every_row_deleted_and_every_row_copied(sample: Sample, tell: Tell) -> None:
    tried(
        sample,
        tell,
        lambda table: [
            *deletions(table, sample.rows(table)),
            *additions(table, sample.rows(table)),
        ],
    )


@pytest.mark.campaign
@pytest.mark.usefixtures("at_length")
def test_what_sqlite_takes_though_no_column_is_made_for_it(sample: Sample, tell: Tell) -> None:
    """It is found, though not always named: a row that cannot be read has no book."""
    if not sample.books.is_sqlite:
        pytest.skip("PostgreSQL's columns take only what they are made for")
    tried(
        sample,
        tell,
        lambda table: (
            replace(each, books=each.books | {None}) for each in nonsense(table, sample.some(table))
        ),
    )


@pytest.mark.slow
def test_emptied_journal_is_found(sample: Sample) -> None:
    """Of the registry nothing is left that its rows could be compared with; of an allocation's
    there is no opening.
    """
    kept = sample.rows("journal")
    for book in (0, 1, 2):
        sample.books.change("DELETE FROM journal WHERE book = :book", book=book)
        assert book in sample.found()
        for entry in kept:
            if entry["book"] == book:
                insert(sample.books, "journal", entry)
    assert sample.found() == set()


@pytest.mark.slow
def test_a_token_made_good_again(sample: Sample) -> None:
    (revoked,) = [row for row in sample.rows("token") if row["revoked_at"] is not None]
    for change in (
        "revoked_at = NULL",
        "revoked_at = revoked_at + 1000000",
        "expires_at = expires_at + 86400",
        "scopes = 'read  write'",
    ):
        sample.books.change(f"UPDATE token SET {change} WHERE id = :id", id=revoked["id"])
        assert sample.found() == {REGISTRY}, change
        sample.books.change("DELETE FROM token WHERE id = :id", id=revoked["id"])
        assert sample.found() == {REGISTRY}
        insert(sample.books, "token", revoked)
    assert sample.found() == set()


@pytest.mark.slow
def test_sums_that_belong_to_no_allocation(sample: Sample) -> None:
    """A user's sums moved to an allocation that never was, one below its own."""
    for allocation in (-5, 0):
        sample.books.change(
            "UPDATE user_sum SET allocation = :new WHERE allocation = 1", new=allocation
        )
        assert {1, allocation} <= sample.found()
        sample.books.change(
            "UPDATE user_sum SET allocation = 1 WHERE allocation = :new", new=allocation
        )
    assert sample.found() == set()


# --- what was written down elsewhere, and the command ---

FORGED = [
    (cut_tail, 2, "allocation 2"),
    (rewrite, 1, "allocation 1"),
    (cut_registry, REGISTRY, "the registry"),
]


@pytest.mark.slow
def test_a_perfect_forgery_is_found_by_the_heads_that_were_written_down(sample: Sample) -> None:
    audit = Audit(sample.store)
    heads = {each.book: each for each in audit.journal_heads()}
    for forge, book, _ in FORGED:
        undo = forge(sample.books)
        assert audit.verify().findings == (), f"{forge.__name__} is no perfect forgery"
        assert {each.book for each in audit.verify(heads).findings} == {book}
        undo()
    assert audit.verify(heads).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize(("forge", "book", "name"), FORGED[:2])
def test_the_command_exits_with_8_and_names_the_book(
    forge: Callable[[Books], object], book: int, name: str
) -> None:
    with made() as bank:
        write_sample(bank.store)
        heads = bank.folder / "monday.heads"
        heads.write_text(bank.command("audit", "heads").stdout)
        forge(Books(bank.store))
        found = bank.command("audit", "verify", "--heads", str(heads))
        assert (found.returncode, f"x {name}" in found.stdout) == (8, True), found.stdout


@pytest.mark.slow
def test_the_command_says_what_was_altered(database: str) -> None:
    with made(database) as bank:
        write_sample(bank.store)
        Books(bank.store).change("UPDATE allocation SET deposited = deposited + 1 WHERE id = 2")
        found = bank.command("audit", "verify")
        assert found.returncode == 8
        assert "x allocation 2: its row was altered: deposited is" in found.stdout
