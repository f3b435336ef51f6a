"""Limits of associations and QOS that hold a job back, in Slurm's order and under its names (facts,
section 2.5)."""
