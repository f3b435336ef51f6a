"""Package sqlite."""
