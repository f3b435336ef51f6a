"""Embedded workload manager: runs jobs on machines without Slurm, with Slurm's commands."""
