"""Package ops."""
