"""Entries are numbered one by one: drawn in blocks by each server, their numbers did not follow time."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        # The next block is the first that no server drew from; and a restore may have set the journal beyond it.
        op.execute("SELECT setval('entry_block', greatest(nextval('entry_block'), (SELECT coalesce(max(id), 0) + 1 FROM journal)), false)")
        op.execute("ALTER SEQUENCE entry_block INCREMENT BY 1")
        op.execute("ALTER SEQUENCE entry_block RENAME TO entry_id_seq")
