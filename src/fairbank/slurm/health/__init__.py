"""Health of a Slurm next to the bank: checks of its settings, its plug-ins and the agent.

Pure, except for `doctor`, which asks the commands and reads the files.
"""
