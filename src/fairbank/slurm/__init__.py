"""Everything Slurm: what its plug-ins read, and what we read of it."""
