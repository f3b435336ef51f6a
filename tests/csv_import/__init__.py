"""Tests with a real Slurm: its daemons, its commands and real users on one machine."""
