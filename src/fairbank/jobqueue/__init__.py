"""Limits, usage, factors, dependencies, arrays and pass times of a queue of jobs, for the
simulator, the live explanation and a workload manager. Pure.
"""
