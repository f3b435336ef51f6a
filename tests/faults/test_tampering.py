"""Whatever a hand does to the tables, past the bank and past its triggers, the audit finds, and names the book."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import psycopg
import pytest

from fairbank.bank.entry import Kind
from tests.faults.auditing import findings
from tests.faults.books import Books
from tests.faults.forging import KEYS, Forgery, additions, alterations, deletions, nonsense
from tests.faults.sample import write_sample
from tests.support.postgres import PostgresServer

Tell = Callable[[str], None]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def books(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Sample books on either store."""
    if request.param == "sqlite":
        yield written(f"sqlite:///{tmp_path_factory.mktemp('books')}/books.sqlite")
    else:
        server: PostgresServer = request.getfixturevalue("postgres18")
        with server.fresh_database() as name:
            yield written(server.url(name))


def written(url: str) -> Books:
    write_sample(url)
    books = Books(url)
    assert {row["kind"] for row in books.rows("SELECT kind FROM journal")} == {each.value for each in Kind}
    assert findings(url) == ()
    return books


def tried(books: Books, forgeries: Iterable[Forgery], tell: Tell) -> None:
    """Each one alone is found, in the book where it was done; taken back, there is nothing to find."""
    missed, count, refused = [], 0, 0
    for each in forgeries:
        try:
            each.do(books)
        except psycopg.IntegrityError:  # PostgreSQL lets nobody past its rules
            refused += 1
            continue
        found = {finding.book for finding in findings(books.url)}
        if not found & each.books:
            missed.append(f"{each.what}: found in {found}")
        each.undo(books)
        count += 1
    tell(f"{count} forgeries tried, {refused} more refused by the database")
    assert missed == []
    assert findings(books.url) == ()


def rows(books: Books, table: str) -> list[dict[str, object]]:
    return books.rows(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}")


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS)
def test_every_column_of_every_row(books: Books, table: str, tell: Tell) -> None:
    tried(books, alterations(table, rows(books, table)), tell)


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS)
def test_every_row_deleted_and_every_row_copied(books: Books, table: str, tell: Tell) -> None:
    some = rows(books, table)
    tried(books, [*deletions(table, some), *additions(table, some)], tell)


@pytest.mark.slow
@pytest.mark.parametrize("table", KEYS)
def test_what_sqlite_takes_though_no_column_is_made_for_it(books: Books, table: str, tell: Tell) -> None:
    if not books.is_sqlite:
        pytest.skip("PostgreSQL's columns take only what they are made for")
    tried(books, nonsense(table, rows(books, table)), tell)
