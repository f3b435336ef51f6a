"""Migrations to the schema of `fairbank.store.schema`, run by Alembic."""
