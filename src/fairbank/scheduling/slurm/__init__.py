"""Slurm's main and backfill passes, their parameters, queue order and preemption."""
