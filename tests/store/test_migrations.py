"""A database becomes what the schema says, in one transaction, and is told apart from older and newer ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, inspect

from fairbank.bank.entry import Kind
from fairbank.bank.ledger.tokens import ADOPTED
from fairbank.bank.wish import Adjust, Lapse, Note, Refund, Release, RevokeToken
from fairbank.service.audit import Audit
from fairbank.store import migrating
from fairbank.store.migrating import migrate
from fairbank.store.opening import open_store
from fairbank.store.schema import REVISION, metadata
from fairbank.store.sqlite_driver import driver
from fairbank.values.trouble import Conflict, Unknown, Unreachable
from fairbank.values.units import SuMinutes
from tests.contracts.centre import END, START, charge, contents, fill, granted, hold, job, late_charge, token
from tests.contracts.places import Place
from tests.support.postgres import PostgresServer

MIGRATIONS = Path(migrating.__file__).parent / "migrations"


def test_the_newest_migration_is_the_one_the_schema_names() -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_heads() == [REVISION]


def test_migrations_make_what_the_schema_describes(sql_place: Place) -> None:
    engine = create_engine(sql_place.url) if sql_place.is_postgres else create_engine(sql_place.url, module=driver)
    with engine.connect() as connection:
        wanted = MigrationContext.configure(connection, opts={"compare_type": True, "include_object": _is_ours})
        differences = compare_metadata(wanted, metadata)
        checks = {
            name: sorted(filter(None, (each["name"] for each in inspect(connection).get_check_constraints(name))))
            for name in metadata.tables
        }
    engine.dispose()
    assert differences == []
    assert checks == {name: sorted(_checks_of(name)) for name in metadata.tables}


def _is_ours(_object: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
    """Alembic's own table, and the index behind the exclusion constraint, are none of the schema's."""
    return name not in ("alembic_version", "allocation_periods_apart")


def _checks_of(table: str) -> list[str]:
    return [str(each.name) for each in metadata.tables[table].constraints if type(each).__name__ == "CheckConstraint"]


def test_migrating_twice_changes_nothing(sql_place: Place) -> None:
    store = sql_place.open()
    fill(store)
    before = contents(store)
    assert not migrate(sql_place.url)
    assert contents(store) == before


def test_tokens_from_before_the_journal_knew_them_get_their_entries(sql_place: Place) -> None:
    store = sql_place.open()
    fill(store)
    granted(store, Note(details="token 1 made: 'laptop' of user 1001, read write, until 1970-01-01T02:46:40Z"))
    digest = "'\\x{}'" if sql_place.is_postgres else "x'{}'"
    for number, revoked in ((1, "NULL"), (2, "1500")):
        row = f"{number}, {digest.format(f'0{number}' * 32)}, 1001, 'laptop', 'read write', 1000, 10000, {revoked}"
        sql_place.run(f"INSERT INTO token VALUES ({row})")
    if sql_place.is_postgres:
        sql_place.run("SELECT setval('token_id_seq', 2)")
    before = contents(store)
    assert [each.what for each in Audit(store).verify().findings] == [
        f"the row of token {number} was added: the journal knows nothing of it" for number in (1, 2)
    ]
    _back_to_0003(sql_place)
    assert migrate(sql_place.url)
    after = contents(store)
    adopted = [each for each in after[5] if each not in before[5]]
    assert [(each.book, each.kind, each.actor, each.owner, each.comment) for each in adopted] == [(0, Kind.TOKEN, 0, 1001, ADOPTED)] * 2
    assert (after[:5], after[7]) == (before[:5], before[7])
    assert Audit(store).verify().findings == ()
    granted(store, RevokeToken(token=1), token("phone"))
    assert Audit(store).verify().findings == ()
    assert not migrate(sql_place.url)


def test_runs_that_are_there_learn_which_entry_set_them(sql_place: Place) -> None:
    """Two servers wrote them, each with numbers of its own: the order in the book counts."""
    one, two = sql_place.open(), sql_place.open()
    fill(one)
    granted(one, *(hold(number, 10) for number in range(1, 6)), late_charge(6, 1))
    granted(two, *(Adjust(run=job(number), amount=SuMinutes(20), until=END) for number in (2, 3, 4)))
    granted(one, charge(3, 5), Release(run=job(4), ended=START, outcome="NODE_FAIL"))
    granted(one, Refund(run=job(3)))
    granted(one, Lapse(run=job(5)), at=END)
    before = contents(one)
    _back_to_0003(sql_place)
    one.close()
    two.close()
    assert migrate(sql_place.url)
    assert contents(sql_place.open()) == before
    assert Audit(sql_place.open()).verify().findings == ()


def _back_to_0003(place: Place) -> None:
    """Undo what was added since; the migrations must find it all again in the journal."""
    _back_to_0007(place)
    place.run("DROP INDEX journal_undoing")
    place.run("DROP INDEX journal_refused")
    place.run("DROP INDEX journal_key")
    place.run("ALTER TABLE run DROP COLUMN set_by")
    place.run("CREATE UNIQUE INDEX journal_key ON journal (key) WHERE key IS NOT NULL")
    place.run("UPDATE alembic_version SET version_num = '0003'")


def _back_to_0007(place: Place) -> None:
    """With a block of entries' numbers begun."""
    if place.is_postgres:
        place.run("ALTER SEQUENCE entry_id_seq RENAME TO entry_block")
        place.run("ALTER SEQUENCE entry_block INCREMENT BY 1000")
        place.run("SELECT setval('entry_block', 1)")
    place.run("UPDATE alembic_version SET version_num = '0007'")


def test_entries_are_numbered_on_beyond_the_blocks_that_were_begun(sql_place: Place) -> None:
    store = sql_place.open()
    fill(store)
    _back_to_0007(sql_place)
    assert migrate(sql_place.url)
    numbers = [each.entry or 0 for _ in range(2) for each in granted(store, Note(details="one by one"))]
    if sql_place.is_postgres:
        assert min(numbers) == 1001
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == max(each.id for each in contents(store)[5])


def test_memory_needs_no_migration() -> None:
    assert not migrate("memory:")


@pytest.mark.parametrize("statement", ["CREATE TABLE journal", "CREATE TRIGGER run_stays", "CREATE VIEW balances", "UPDATE alembic"])
def test_a_migration_that_is_stopped_midway_has_changed_nothing(bare_url: str, statement: str) -> None:
    """The next try makes all of it."""
    with _stopped_after(statement), pytest.raises(KeyboardInterrupt):
        migrate(bare_url)
    with pytest.raises(Unknown, match="no books"):
        open_store(bare_url)
    assert migrate(bare_url)
    open_store(bare_url).close()


@contextmanager
def _stopped_after(wanted: str) -> Iterator[None]:
    def stop(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if wanted in " ".join(statement.split()):
            raise KeyboardInterrupt

    event.listen(Engine, "after_cursor_execute", stop)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", stop)


def test_two_servers_may_migrate_at_once(bare_url: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(migrate, [bare_url] * 3))
    assert sorted(done) == [False, False, True]


def test_older_books_are_told_to_be_migrated(sql_place: Place) -> None:
    sql_place.run("UPDATE alembic_version SET version_num = '0002'")
    with pytest.raises(Conflict, match=f"schema 0002, this Fairbank needs {REVISION}") as told:
        sql_place.open()
    assert "fairbank init" in str(told.value.remedy)


def test_newer_books_are_left_alone(sql_place: Place) -> None:
    sql_place.run("UPDATE alembic_version SET version_num = '9999'")
    for attempt in (migrate, open_store):
        with pytest.raises(Conflict, match="9999") as told:
            attempt(sql_place.url)
        assert "newer Fairbank" in str(told.value.remedy)


def test_a_database_that_does_not_exist_is_unreachable(postgres18: PostgresServer) -> None:
    for attempt in (migrate, open_store):
        with pytest.raises(Unreachable, match="does not exist"):
            attempt(postgres18.url("nowhere"))


def test_a_server_that_does_not_exist_is_unreachable(tmp_path: Path) -> None:
    for attempt in (migrate, open_store):
        with pytest.raises(Unreachable):
            attempt(f"postgresql://bank@/books?host={tmp_path}")


def test_revisions_are_numbered_in_their_order() -> None:
    names = sorted(path.stem for path in (MIGRATIONS / "versions").glob("v*.py"))
    assert [re.match(r"v(\d{4})_", name)[1] for name in names] == [f"{number:04}" for number in range(1, len(names) + 1)]  # type: ignore[index]
