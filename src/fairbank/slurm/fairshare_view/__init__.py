"""Ranks of users and jobs as rows to show: as Slurm prints them, and computed again by
`priority`.
"""
