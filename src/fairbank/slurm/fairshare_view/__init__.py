"""How users and jobs rank, as rows to be shown: what Slurm's answers say of it, and the same computed anew by the room `priority`."""
