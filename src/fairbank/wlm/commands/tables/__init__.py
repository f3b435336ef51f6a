"""Commands that show rows of the controller in the columns of report.slurm."""
