"""Tests of priorities: Slurm's known vectors, laws that hold for every tree, and rejected rows."""
