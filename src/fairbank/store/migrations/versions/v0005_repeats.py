"""What is asked again: a run's row names the entry that set it, and a key is its actor's own.

Rows that are there already learn their entry from the journal.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_KEYED = sa.text("key IS NOT NULL")

# The newest entry of each run in the order of its book: where several servers write, numbers do not tell which came later.
_SET = """
    UPDATE run SET set_by = newest.id
    FROM (
        SELECT run, id, row_number() OVER (PARTITION BY run ORDER BY seq DESC) AS place
        FROM journal
        WHERE run IS NOT NULL AND kind IN ('hold', 'adjust', 'charge', 'release', 'lapse')
    ) AS newest
    WHERE newest.run = run.id AND newest.place = 1
"""


def upgrade() -> None:
    op.add_column("run", sa.Column("set_by", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.execute(_SET)
    op.drop_index("journal_key", "journal")
    op.create_index("journal_key", "journal", ["actor", "key"], unique=True, sqlite_where=_KEYED, postgresql_where=_KEYED)
