"""Controller, nodes, agent and bank in one process, on a virtual clock."""
