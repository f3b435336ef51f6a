"""State of slurmctld that the scheduler's model needs: nodes, jobs, dependencies, limits."""
