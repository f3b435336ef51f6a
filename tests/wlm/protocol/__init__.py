"""Frames, messages and connections of the workload manager."""
