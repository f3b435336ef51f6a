"""Shares, usage, limits and priorities as Slurm computes them, on columns of numbers."""
