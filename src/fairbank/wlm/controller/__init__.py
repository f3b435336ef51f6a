"""Controller of the workload manager: the core with sockets, state file, planner and agent."""
