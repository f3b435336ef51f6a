"""Short commands for a queue: the embedded workload manager, or Slurm."""
