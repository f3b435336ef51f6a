"""Authentication by the Unix socket, MUNGE credentials or tokens."""
