"""Machines that a policy plans on, identical processors or nodes, with their queues and
profiles.
"""
