"""Placement of jobs: sets of nodes, constraints, free resources, and selection of nodes."""
