"""Store in memory."""
