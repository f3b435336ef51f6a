"""The machine and its jobs: runs, described jobs, partitions, nodes and what jobs ask of them."""
