"""Package machines."""
