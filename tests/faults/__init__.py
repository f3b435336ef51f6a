"""Fault campaigns with real servers and databases: load, kills, lost messages, manual edits."""
