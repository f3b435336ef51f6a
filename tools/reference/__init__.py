"""The reference pages that are drawn from the code: settings, routes, commands, states, refusals."""
