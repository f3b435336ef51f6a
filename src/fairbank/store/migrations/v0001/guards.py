"""Triggers: terms of an allocation series never overlap, the journal only grows, allocations and
runs are never deleted.

Only a restore with `replace` drops the last two, inside its own transaction
(`fairbank.store.sql.restore`).
"""

from __future__ import annotations

from alembic import op

_POSTGRESQL = (
    "CREATE EXTENSION IF NOT EXISTS btree_gist",
    """
    ALTER TABLE allocation ADD CONSTRAINT allocation_periods_apart
    EXCLUDE USING gist (project WITH =, resource WITH =, int8range(start_at, end_at) WITH &&)
    """,
    """
    CREATE FUNCTION fairbank_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'rows of % are never changed or deleted: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation', CONSTRAINT = TG_NAME;
    END
    $$
    """,
    """
    CREATE TRIGGER journal_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
    """
    CREATE TRIGGER run_stays BEFORE DELETE OR TRUNCATE ON run
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
    """
    CREATE TRIGGER allocation_stays BEFORE DELETE OR TRUNCATE ON allocation
    FOR EACH STATEMENT EXECUTE FUNCTION fairbank_refuse()
    """,
)

_OVERLAP = """
    CREATE TRIGGER {name} BEFORE {event} ON allocation
    WHEN {moved} EXISTS (
        SELECT 1 FROM allocation AS other
        WHERE other.project = NEW.project AND other.resource = NEW.resource AND other.id <> NEW.id
          AND other.start_at < NEW.end_at AND NEW.start_at < other.end_at
    )
    BEGIN SELECT RAISE(ABORT, 'allocation_periods_apart: allocations overlap'); END
"""
_REFUSE = """
    CREATE TRIGGER {name} BEFORE {event} ON {table}
    BEGIN SELECT RAISE(ABORT, '{name}: rows of {table} are never changed or deleted'); END
"""
_SQLITE = (
    _OVERLAP.format(name="allocation_apart_when_opened", event="INSERT", moved=""),
    _OVERLAP.format(
        name="allocation_apart_when_amended",
        event="UPDATE OF project, resource, start_at, end_at",
        moved=(
            "(NEW.project, NEW.resource, NEW.start_at, NEW.end_at) IS NOT (OLD.project,"
            " OLD.resource, OLD.start_at, OLD.end_at) AND"
        ),
    ),
    _REFUSE.format(name="journal_only_grows", event="UPDATE", table="journal"),
    _REFUSE.format(name="journal_stays", event="DELETE", table="journal"),
    _REFUSE.format(name="run_stays", event="DELETE", table="run"),
    _REFUSE.format(name="allocation_stays", event="DELETE", table="allocation"),
)


def make() -> None:
    for statement in _POSTGRESQL if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)
