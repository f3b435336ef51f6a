"""Package results."""
