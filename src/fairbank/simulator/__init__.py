"""Recorded and synthetic workloads under policies: traces, engine, results, comparisons. No I/O, no
clock, no randomness without a seed."""
