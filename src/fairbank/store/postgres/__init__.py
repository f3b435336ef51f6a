"""Package postgres."""
