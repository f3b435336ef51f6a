"""Simulations on files: traces, policy files, comparison of policies, what-if."""
