"""Commands for traces, simulations and figures."""
