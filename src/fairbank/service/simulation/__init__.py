"""Files of simulations, and replays of workloads through a bank."""
