"""Machine and jobs: runs, requests, accounting, partitions, nodes, reservations, dependencies."""
