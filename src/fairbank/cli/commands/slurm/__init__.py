"""Commands for hosts that run Slurm."""
