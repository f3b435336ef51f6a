"""What a live Slurm says, put together as the snapshot that a pass of the scheduler reads. Pure."""
