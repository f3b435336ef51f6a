"""Machine and jobs: runs, job requests, partitions, nodes, reservations, dependencies."""
