"""Machines on which a pass plans, identical processors or nodes, with queues and profiles."""
