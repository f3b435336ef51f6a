"""Explanations of why a job waits: headline, checks with evidence, position, and the jobs ahead."""
