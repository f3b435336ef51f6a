"""Tools of others that use Slurm, unchanged, on a cluster of one host."""
