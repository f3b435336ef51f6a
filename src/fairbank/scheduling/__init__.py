"""Scheduling passes: pure functions from a snapshot of a machine and its queue to a plan."""
