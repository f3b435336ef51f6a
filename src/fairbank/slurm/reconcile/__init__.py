"""Comparison of Slurm with the bank: runs, prices, accounts, and what to do about differences.

Pure, except for `reconciler` and `repair`, which fetch and post.
"""
