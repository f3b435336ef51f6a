"""Helpers of the tests: real servers as unprivileged users, ended with the tests in every case."""
