"""Package policies."""
