"""Language check: names, docstrings, prose and layout that a script can judge."""
