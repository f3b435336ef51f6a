"""Tests of scheduling: schedules computed by hand, the same ones from definitions, and laws that
hold for every workload.
"""
