"""Migration of a database to the schema in one transaction; older and newer databases are
distinguished.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event, inspect

from fairbank.core.errors import Conflict, Corrupt, NotFound, Unavailable
from fairbank.service.ops.audit import Audit
from fairbank.store import migration, schema_version
from fairbank.store.factory import open_store
from fairbank.store.migration import migrate
from fairbank.store.schema import REVISIONS, metadata
from fairbank.store.sqlite.driver import driver
from fairbank.store.urls import parse_url
from tests.contracts.databases import Place
from tests.contracts.small_site import charge, contents, fill, granted, hold, late_charge, token
from tests.support.postgres import PostgresServer


def test_schema_names_all_migrations() -> None:
    result = ScriptDirectory(str(migration.MIGRATIONS)).walk_revisions()
    assert tuple(difference.revision for difference in result)[::-1] == REVISIONS


def test_migrations_create_the_schema(sql_place: Place) -> None:
    engine = (
        create_engine(sql_place.url)
        if sql_place.is_postgres
        else create_engine(sql_place.url, module=driver)
    )
    with engine.connect() as connection:
        expected = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": _is_ours}
        )
        differences = compare_metadata(expected, metadata)
        checks = {
            name: sorted(
                filter(
                    None,
                    (
                        constraint["name"]
                        for constraint in inspect(connection).get_check_constraints(name)
                    ),
                )
            )
            for name in metadata.tables
        }
    engine.dispose()
    assert differences == []
    assert checks == {name: sorted(_checks_of(name)) for name in metadata.tables}


def _is_ours(
    _object: object, name: str | None, kind: str, _reflected: bool, _other: object
) -> bool:
    """Return False for Alembic's table and for the index behind the exclusion constraint, which are
    not part of the schema.
    """
    return name not in ("alembic_version", "allocation_periods_apart")


def _checks_of(table: str) -> list[str]:
    return [
        str(constraint.name)
        for constraint in metadata.tables[table].constraints
        if type(constraint).__name__ == "CheckConstraint"
    ]


def test_migrating_twice_changes_nothing(sql_place: Place) -> None:
    store = sql_place.open()
    fill(store)
    before = contents(store)
    assert not migrate(sql_place.url)
    assert contents(store) == before


LATER = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("project", sa.Column("motto", sa.Text))
    op.execute("UPDATE project SET motto = upper(gname)")
"""


@pytest.fixture
def a_later_release(tmp_path: Path) -> Callable[[], AbstractContextManager[None]]:
    """Add a second migration for the time of the block."""
    folder = tmp_path / "migrations"
    shutil.copytree(migration.MIGRATIONS, folder)
    (folder / "versions" / "v0002_mottos.py").write_text(LATER)

    @contextmanager
    def later() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(migration, "MIGRATIONS", folder)
            for module in (migration, schema_version):
                patch.setattr(module, "REVISIONS", ("0001", "0002"))
            yield

    return later


def test_later_migration_keeps_all_data(
    sql_place: Place, a_later_release: Callable[[], AbstractContextManager[None]]
) -> None:
    store = sql_place.open()
    fill(store)
    granted(store, hold(1, 10), late_charge(2, 5), token("phone"))
    before = contents(store)
    with a_later_release():
        with pytest.raises(Conflict, match="schema 0001, this Fairbank needs 0002") as raised:
            sql_place.open()
        assert "fairbank init" in str(raised.value.remedy)
        with _stopped_after("UPDATE project SET motto"), pytest.raises(KeyboardInterrupt):
            migrate(sql_place.url)
        with pytest.raises(Conflict, match="0001"):
            sql_place.open()
        assert migrate(sql_place.url)
        assert not migrate(sql_place.url)
        assert sql_place.run("SELECT motto FROM project ORDER BY id") == [
            ("PHYSICS",),
            ("CHEMISTRY",),
        ]
        after = sql_place.open()
        assert contents(after) == before
        granted(after, charge(1, 7))
        assert Audit(after).verify().findings == ()
    with pytest.raises(Conflict, match="'0002', which this Fairbank does not know"):
        sql_place.open()


def test_memory_needs_no_migration() -> None:
    assert not migrate("memory:")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE journal",
        "CREATE TRIGGER run_stays",
        "CREATE VIEW balances",
        "INSERT INTO alembic",
    ],
)
def test_interrupted_migration_changes_nothing(bare_url: str, statement: str) -> None:
    """The retry completes it."""
    with _stopped_after(statement), pytest.raises(KeyboardInterrupt):
        migrate(bare_url)
    with pytest.raises(NotFound, match="no bank"):
        open_store(bare_url)
    assert migrate(bare_url)
    open_store(bare_url).close()


@contextmanager
def _stopped_after(statement_start: str) -> Iterator[None]:
    def stop(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement_start in " ".join(statement.split()):
            raise KeyboardInterrupt

    event.listen(Engine, "after_cursor_execute", stop)
    try:
        yield
    finally:
        event.remove(Engine, "after_cursor_execute", stop)


def test_two_servers_can_migrate_concurrently(bare_url: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(migrate, [bare_url] * 3))
    assert sorted(done) == [False, False, True]


@pytest.mark.parametrize("revision", ["9999", "0000", "0001b", "a schema of somebody else's"])
def test_database_of_unknown_schema_is_left_alone(sql_place: Place, revision: str) -> None:
    sql_place.run("ALTER TABLE alembic_version RENAME TO alembic_old")
    sql_place.run("CREATE TABLE alembic_version (version_num text)")
    sql_place.run("INSERT INTO alembic_version VALUES ('{}')".format(revision.replace("'", "''")))
    for attempt in (migrate, open_store):
        with pytest.raises(
            Conflict, match="which this Fairbank does not know: it knows schemas up to 0001"
        ) as raised:
            attempt(sql_place.url)
        assert revision in raised.value.message
        assert raised.value.remedy == "use the Fairbank that migrated it, or a newer one"


def test_missing_database_is_unavailable(postgres18: PostgresServer) -> None:
    for attempt in (migrate, open_store):
        with pytest.raises(Unavailable, match="does not exist"):
            attempt(postgres18.url("nowhere"))


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_database_without_utf_8_is_refused(postgres18: PostgresServer, encoding: str) -> None:
    with postgres18.fresh_database("template0", encoding) as name:
        for attempt in (migrate, open_store):
            with pytest.raises(Conflict, match=f"the database's encoding is {encoding}") as raised:
                attempt(postgres18.url(name))
            assert raised.value.field == "store.url"
            assert (
                raised.value.remedy
                == "create the database with ENCODING 'UTF8' (createdb -E UTF8 -T template0 NAME)"
            )


def test_missing_server_is_unavailable(tmp_path: Path) -> None:
    for attempt in (migrate, open_store):
        with pytest.raises(Unavailable):
            attempt(f"postgresql://bank@/books?host={tmp_path}")


def test_revisions_are_numbered_in_order() -> None:
    names = sorted(path.stem for path in (migration.MIGRATIONS / "versions").glob("v*.py"))
    assert (
        [name[1:5] for name in names]
        == list(REVISIONS)
        == [f"{number:04}" for number in range(1, len(names) + 1)]
    )


@pytest.mark.parametrize("revision", ["0001", "0008"])
def test_store_from_before_the_first_release_is_refused(bare_url: str, revision: str) -> None:
    """The old tables that the check reads, as the migrations of that time created them."""
    engine = create_engine(parse_url(bare_url))
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE alembic_version (version_num text)",
            f"INSERT INTO alembic_version VALUES ('{revision}')",
            "CREATE TABLE journal (id bigint PRIMARY KEY, book bigint NOT NULL, seq bigint)",
            "CREATE TABLE office (id bigint PRIMARY KEY, seq bigint)",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    for attempt in (migrate, open_store):
        with pytest.raises(Conflict, match="written by an older version") as refused:
            attempt(bare_url)
        assert str(refused.value.remedy).startswith("move the database away")


@pytest.mark.parametrize(
    ("statements", "missing"),
    [
        (["ALTER TABLE run DROP COLUMN occupied"], "column run.occupied is missing;"),
        (["DROP TABLE share_figure"], "table share_figure is missing;"),
        (
            ["ALTER TABLE run DROP COLUMN occupied", "DROP TABLE usage_sum"],
            "column run.occupied is missing, and 1 more;",
        ),
    ],
)
def test_store_without_a_table_or_column_of_its_schema_is_refused(
    sql_place: Place, statements: list[str], missing: str
) -> None:
    for statement in statements:
        sql_place.run(statement)
    for attempt in (migrate, open_store):
        with pytest.raises(Conflict) as refused:
            attempt(sql_place.url)
        assert missing in refused.value.message
        assert "its schema 0001" in refused.value.message
        assert str(refused.value.remedy).startswith("move the database away")
        assert "fairbank restore FILE" in str(refused.value.remedy)


def test_column_dropped_from_an_open_store_is_no_damage_of_the_file(sql_place: Place) -> None:
    store = sql_place.open()
    fill(store)
    sql_place.run("ALTER TABLE run DROP COLUMN occupied")
    for attempt in (contents, lambda store: granted(store, hold(1, 10))):
        with pytest.raises(Corrupt, match=r"the ledger is incomplete: .*occupied") as raised:
            attempt(store)
        assert "fairbank doctor" in str(raised.value.remedy)
