"""Agent between a scheduler and the bank: it reports runs, and survives outages."""
