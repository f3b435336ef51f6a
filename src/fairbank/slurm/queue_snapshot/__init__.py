"""Snapshot of a live Slurm for a pass of the scheduler's model. Pure."""
