"""Arrays: all tasks at once, and some at a time."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def array(queue: ScenarioQueue) -> None:
    """An array that runs two tasks at a time, of a node each."""
    queue.submit_running("first", "-N3", WHOLE, "-t10").down()
    queue.submit("tasks", "--array=1-6%2", WHOLE, "-t5", priority=900)
    queue.submit("other", "-N1", WHOLE, "-t5", priority=500)


def array_of_many(queue: ScenarioQueue) -> None:
    """More tasks than nodes."""
    queue.submit_running("first", "-N2", WHOLE, "-t10").down()
    queue.submit("tasks", "--array=3,5,7-10", WHOLE, "-t5", priority=900)
    queue.submit("other", "-n1", "-t5", priority=500)
