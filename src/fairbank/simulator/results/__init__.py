"""Results of a simulation: starts, measures, fairness, explanations."""
