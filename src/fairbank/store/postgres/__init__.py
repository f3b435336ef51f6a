"""Store on PostgreSQL."""
