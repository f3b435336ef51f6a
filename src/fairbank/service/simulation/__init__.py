"""Simulations and replays of workloads: traces, policy files, comparison, what-if."""
