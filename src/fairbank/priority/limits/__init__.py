"""Limits of associations and QOS that hold a job back, in Slurm's order and under its names.

Source: docs/reference/slurm-rules.md, "Limits".
"""
