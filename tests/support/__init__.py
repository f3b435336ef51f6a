"""Helpers of the tests: real servers as unprivileged users, which always end with the tests."""
