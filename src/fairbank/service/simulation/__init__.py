"""Package simulation."""
