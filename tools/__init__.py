"""What the house needs and the product does not: the map of the code, the check of the lock files."""
