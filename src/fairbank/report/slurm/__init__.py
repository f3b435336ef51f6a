"""Text of Slurm's commands in the form of Slurm 24.11: one table of columns for each command.

`slurm/parsers` take names, letters, separators and special words from here.
"""
