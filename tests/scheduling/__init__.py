"""Tests of schedules: known by hand, from definitions, and laws for every workload."""
