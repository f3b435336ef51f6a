"""An index of the entries that may take another back: few in each book, and looked through whenever an entry is undone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_UNDOING = sa.text("kind IN ('deposit', 'withdraw', 'transfer-in')")


def upgrade() -> None:
    op.create_index("journal_undoing", "journal", ["book", "seq"], sqlite_where=_UNDOING, postgresql_where=_UNDOING)
