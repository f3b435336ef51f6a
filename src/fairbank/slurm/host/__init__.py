"""This host: its users and groups, and its slurm.conf."""
