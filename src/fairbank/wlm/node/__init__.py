"""Node daemon: starts jobs on one host, follows them over its own restarts, and reports them."""
