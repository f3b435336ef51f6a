"""Steps of running jobs: their cores and tasks, and how they end."""
