"""State machine of the workload manager: an event changes the state and has effects. Pure.

`controller.py` has the entry point. Decision 0051 has the reasons.
"""
