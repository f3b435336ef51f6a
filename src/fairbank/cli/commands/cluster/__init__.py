"""Commands for the cluster of the embedded workload manager on this host."""
