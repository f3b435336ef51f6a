"""Policies from the literature: FIFO, first come first served, EASY and conservative backfill."""
