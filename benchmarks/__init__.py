"""Benchmarks of every published speed: one file per claim, each beside an alternative in the same
run.
"""
