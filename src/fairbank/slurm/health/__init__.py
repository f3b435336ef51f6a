"""Package health."""
