"""Fault campaigns: storms, kills, lost messages, tampering, with real servers and real
databases.
"""
