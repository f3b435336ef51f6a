"""Arrays: all tasks at once, and a limited number at a time."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def array(queue: ScenarioQueue) -> None:
    """An array runs two tasks at a time, of one node each."""
    queue.submit_running("first", "-N3", WHOLE, "-t10").down()
    queue.submit("tasks", "--array=1-6%2", WHOLE, "-t5", priority=900)
    queue.submit("other", "-N1", WHOLE, "-t5", priority=500)


def array_of_many(queue: ScenarioQueue) -> None:
    """The array has more tasks than there are nodes."""
    queue.submit_running("first", "-N2", WHOLE, "-t10").down()
    queue.submit("tasks", "--array=3,5,7-10", WHOLE, "-t5", priority=900)
    queue.submit("other", "-n1", "-t5", priority=500)
