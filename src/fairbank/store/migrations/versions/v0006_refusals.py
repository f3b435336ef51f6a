"""An index of the refusals alone, in their order: staff who list them would else have the whole journal read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_REFUSED = sa.text("kind = 'refusal'")


def upgrade() -> None:
    op.create_index("journal_refused", "journal", ["id"], sqlite_where=_REFUSED, postgresql_where=_REFUSED)
