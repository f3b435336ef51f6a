"""priority/multifactor: what makes up a job's priority, for a million jobs as for one.

Source: docs/reference/slurm-rules.md, "Job priority"; RCAC.
"""
