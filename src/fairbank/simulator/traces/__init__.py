"""Package traces."""
