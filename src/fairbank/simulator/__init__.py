"""Recorded and synthetic work: traces, a modelled month, what happens in them in order. No I/O, no
clock, no randomness without a seed."""
