"""Store on SQLite."""
