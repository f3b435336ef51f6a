"""Draws which room imports which, and keeps the streets one way. Nothing is imported to find out: the files are only read."""
