"""Dependency check of the package. It only reads the files; nothing is imported."""
