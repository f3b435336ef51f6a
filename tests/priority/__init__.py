"""Tests of shares, usage and priorities: known vectors of Slurm, laws for every tree, and refused
rows.
"""
