"""The same decisions on recorded and synthetic work. No I/O, no clock, no randomness without a seed."""
