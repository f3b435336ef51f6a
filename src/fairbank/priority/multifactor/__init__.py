"""Multifactor priorities, for one job as for a million (RCAC, "The Multifactor Plugin")."""
