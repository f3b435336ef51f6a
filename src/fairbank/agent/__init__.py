"""Agent between a scheduler and the bank: it reports starts and ends of runs, and survives outages."""
