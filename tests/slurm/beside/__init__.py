"""Slurm's output and the bank's records: parsers, decisions, and the commands that compare the
two.
"""
