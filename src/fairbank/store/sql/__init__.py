"""Package sql."""
