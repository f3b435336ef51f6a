"""Tests of scheduling: schedules computed by hand, schedules by definition, and laws that hold for
every workload.
"""
