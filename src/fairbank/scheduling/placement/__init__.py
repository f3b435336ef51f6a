"""Where a job goes: sets of nodes, what jobs may say of them, what is free on each, and which are
taken."""
