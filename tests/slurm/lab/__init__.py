"""Small Slurm cluster for the tests, made from Debian's packages, in a directory of its own."""
