"""Forks of one server that run the commands in the place of their clients."""
