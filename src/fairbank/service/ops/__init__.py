"""Operation of a bank: audit, backup and restore, health checks, upkeep."""
