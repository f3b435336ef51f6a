"""Limits, factors and arrays of a queue of jobs, for the explanation beside Slurm and for the
embedded workload manager, and the dependencies of its jobs. Pure.
"""
