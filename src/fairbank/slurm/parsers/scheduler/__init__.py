"""Package scheduler."""
