"""Nodes as the controller sees them: connections, starts of jobs, messages as events."""
