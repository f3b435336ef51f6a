"""Requests of users and operators: submission, changes of jobs, changes of the cluster. Pure."""
