"""Limits of associations and QOS that hold jobs, in Slurm's order and with its names."""
