"""Simulation: the clock, the schedulers, the simulated bank."""
