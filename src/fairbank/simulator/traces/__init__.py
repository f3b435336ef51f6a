"""Workloads: traces in the Standard Workload Format, and synthetic ones."""
