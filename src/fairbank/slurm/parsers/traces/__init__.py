"""Recorded workloads: output of sacct as the simulator reads it."""
