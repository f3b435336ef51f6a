"""Embedded workload manager."""
