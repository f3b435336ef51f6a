"""Faults that are planted in the workload manager, to see that its tests find them."""
