"""Cluster of one host: its supervisor and its bank."""
