"""The agent between a plug-in that is simulated and a bank that is real."""
