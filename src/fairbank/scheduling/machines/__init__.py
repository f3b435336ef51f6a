"""Machines on which a policy plans, identical processors or nodes, with their queues and
profiles.
"""
