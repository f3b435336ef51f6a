"""Tests with a real Slurm: its daemons, its commands, real users, on this one machine."""
