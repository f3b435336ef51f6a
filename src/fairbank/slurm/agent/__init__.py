"""The agent: between slurmctld, which must not wait, and the bank, which may be away (docs/decisions/0013)."""
