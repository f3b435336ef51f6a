"""Machine and jobs: runs, job requests, lines of accounting, partitions, nodes, reservations, dependencies."""
