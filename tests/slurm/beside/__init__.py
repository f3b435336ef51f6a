"""What Slurm says beside what the bank has: parsers, judgements, and the commands that bring the two together."""
