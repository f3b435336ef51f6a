"""Package slurm."""
