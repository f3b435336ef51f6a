"""Whatever a hand does to the tables, past the bank and past its triggers, the audit finds, and names the book."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import psycopg
import pytest

from fairbank.bank.entry import OFFICE, Kind
from fairbank.service.audit import Audit
from fairbank.store.contract import Store
from tests.faults.auditing import store_at
from tests.faults.books import Books, Row
from tests.faults.forging import KEYS, Forgery, additions, alterations, cut_office, cut_tail, deletions, insert, nonsense, rewrite
from tests.faults.sample import write_sample
from tests.support.postgres import PostgresServer
from tests.support.server import made

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sample:
    """Sample books, and the store through which they are audited again and again."""

    books: Books
    store: Store

    def found(self) -> set[int]:
        """In which books the audit finds something."""
        return {each.book for each in Audit(self.store).verify().findings}

    def rows(self, table: str) -> list[Row]:
        return self.books.rows(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}")

    def some(self, table: str) -> list[Row]:
        """Of the journal an entry of each kind, else every row; on PostgreSQL, which is slower, only two of them."""
        found = list({row.get("kind", number): row for number, row in enumerate(self.rows(table))}.values())
        return found if self.books.is_sqlite else found[-2:]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    """Sample books on either store."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('books')}/books.sqlite"
        else:
            server: PostgresServer = request.getfixturevalue("postgres18")
            url = server.url(stack.enter_context(server.fresh_database()))
        write_sample(url)
        sample = Sample(Books(url), stack.enter_context(store_at(url)))
        assert {row["kind"] for row in sample.rows("journal")} == {each.value for each in Kind}
        assert sample.found() == set()
        yield sample


def tried(sample: Sample, forgeries: Iterable[Forgery], tell: Tell) -> None:
    """Each one alone is found, in the book where it was done; taken back, there is nothing to find."""
    missed, count, refused = [], 0, 0
    for each in forgeries:
        try:
            each.do(sample.books)
        except psycopg.IntegrityError:  # PostgreSQL lets nobody past its rules
            refused += 1
            continue
        found = sample.found()
        if not found & each.books:
            missed.append(f"{each.what}: found in {found}")
        each.undo(sample.books)
        count += 1
    tell(f"{count} forgeries tried, {refused} more refused by the database")
    assert missed == []
    assert sample.found() == set()


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS)
def test_every_column(sample: Sample, table: str, tell: Tell) -> None:
    tried(sample, alterations(table, sample.some(table)), tell)


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS)
def test_a_row_deleted_and_a_row_added(sample: Sample, table: str, tell: Tell) -> None:
    tried(sample, [*deletions(table, sample.some(table)), *additions(table, sample.some(table))], tell)


@pytest.mark.campaign
@pytest.mark.parametrize("table", KEYS)
def test_every_column_of_every_row(sample: Sample, table: str, tell: Tell) -> None:
    tried(sample, alterations(table, sample.rows(table)), tell)


@pytest.mark.campaign
@pytest.mark.parametrize("table", KEYS)
def test_every_row_deleted_and_every_row_copied(sample: Sample, table: str, tell: Tell) -> None:
    tried(sample, [*deletions(table, sample.rows(table)), *additions(table, sample.rows(table))], tell)


@pytest.mark.campaign
@pytest.mark.parametrize("table", KEYS)
def test_what_sqlite_takes_though_no_column_is_made_for_it(sample: Sample, table: str, tell: Tell) -> None:
    """It is found, though not always named: a row that cannot be read has no book."""
    if not sample.books.is_sqlite:
        pytest.skip("PostgreSQL's columns take only what they are made for")
    tried(sample, (replace(each, books=each.books | {OFFICE}) for each in nonsense(table, sample.some(table))), tell)


@pytest.mark.slow
def test_whole_books_are_emptied(sample: Sample) -> None:
    """Of the office's nothing is left that its rows could be compared with; of an allocation's there is no opening."""
    kept = sample.rows("journal")
    for book in (0, 1, 2):
        sample.books.change("DELETE FROM journal WHERE book = :book", book=book)
        assert book in sample.found()
        for entry in kept:
            if entry["book"] == book:
                insert(sample.books, "journal", entry)
    assert sample.found() == set()


@pytest.mark.slow
def test_sums_that_belong_to_no_allocation(sample: Sample) -> None:
    """A user's sums moved to an allocation that never was, one below its own."""
    for allocation in (-5, 0):
        sample.books.change("UPDATE user_sum SET allocation = :new WHERE allocation = 1", new=allocation)
        assert {1, allocation} <= sample.found()
        sample.books.change("UPDATE user_sum SET allocation = 1 WHERE allocation = :new", new=allocation)
    assert sample.found() == set()


# --- the command, and what was written down elsewhere ---


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite", "postgresql"])
def test_the_command_exits_with_8_and_names_the_book(place: str, request: pytest.FixtureRequest) -> None:
    with made(request.getfixturevalue("database") if place == "postgresql" else None) as bank:
        write_sample(bank.store)
        books, heads = Books(bank.store), bank.folder / "monday.heads"
        heads.write_text(bank.command("audit", "heads").stdout)
        assert bank.command("audit", "verify", "--heads", str(heads)).returncode == 0
        for what, name in ((cut_tail, "allocation 2"), (rewrite, "allocation 1"), (cut_office, "the office's book")):
            undo = what(books)
            assert bank.command("audit", "verify").returncode == 0, f"{what.__name__} is no perfect forgery"
            found = bank.command("audit", "verify", "--heads", str(heads))
            assert (found.returncode, f"x {name}" in found.stdout) == (8, True), found.stdout
            undo()
        books.change("UPDATE allocation SET deposited = deposited + 1 WHERE id = 2")
        found = bank.command("audit", "verify")
        assert found.returncode == 8
        assert "x allocation 2: its row was altered: deposited is" in found.stdout
