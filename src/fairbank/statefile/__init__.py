"""State file of a daemon: an SQLite file that survives crashes and full disks."""
