"""Ranks of users and jobs: as Slurm prints them, and computed again by `priority`."""
