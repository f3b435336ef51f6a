"""Steps: what srun asks for, and how commands show them."""
