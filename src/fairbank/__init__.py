"""Fairbank: the allocation bank and the fair share of computing centres."""

__version__ = "0.1.0"
