"""Tests of priorities: the vectors that Slurm is known by, laws that hold for every tree, rows that
are refused.
"""
