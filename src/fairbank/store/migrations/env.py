"""Environment of Alembic. `fairbank.store.migration` passes its connection, inside its
transaction.
"""

from __future__ import annotations

from alembic import context

from fairbank.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
