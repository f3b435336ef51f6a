"""Who is next: shares, usage and priorities as Slurm computes them, on whole columns of numbers at
once. No clock, no I/O."""
