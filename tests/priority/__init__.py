"""Who is next: the vectors that Slurm is known by, laws that hold for every tree, and rows that are
refused.
"""
