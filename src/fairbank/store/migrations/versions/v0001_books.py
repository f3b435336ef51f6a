"""Tables of the ledger, their triggers, and the views for reports."""

from __future__ import annotations

from fairbank.store.migrations.v0001 import guards, tables, views

revision = "0001"
down_revision = None


def upgrade() -> None:
    tables.make()
    guards.make()
    views.make()
