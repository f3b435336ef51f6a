"""Node daemon, with real processes."""
