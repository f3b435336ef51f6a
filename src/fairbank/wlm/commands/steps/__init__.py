"""srun and salloc: allocations, steps, and what srun prints of them."""
