"""A small Slurm cluster for the tests, made from Debian's packages, in one folder of its own."""
