"""Protocol of the workload manager: frames, messages, and their connections."""
