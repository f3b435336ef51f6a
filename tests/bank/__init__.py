"""Tests of the bank: stories, a reference model, and invariants."""
