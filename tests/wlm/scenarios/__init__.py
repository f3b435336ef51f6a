"""Scenarios of commands, run under Slurm and under the embedded workload manager."""
