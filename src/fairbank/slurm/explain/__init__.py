"""Explanation why a job waits at Slurm, or when a new one would start, with the rules of the site
and the price in its bank.
"""
