"""Slurm: its commands and their output, and what the bank compares with them or writes for them."""
