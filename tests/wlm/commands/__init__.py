"""Commands under Slurm's names."""
