"""The machine and its jobs, as far as money needs them: runs, described jobs, partitions."""
