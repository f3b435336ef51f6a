"""Package fairshare."""
