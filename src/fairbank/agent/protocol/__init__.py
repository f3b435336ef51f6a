"""Protocol between the PrEp plug-in and the agent (docs/decisions/0012)."""
