"""What to make of Slurm's answers and the bank's books: what differs, what is to be done. Pure: values in, values out."""
