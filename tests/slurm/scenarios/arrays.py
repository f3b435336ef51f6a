"""Arrays: all tasks at once, and a limited number at a time."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, Queue


def array(queue: Queue) -> None:
    """An array runs two tasks at a time, of one node each."""
    queue.runs("first", "-N3", WHOLE, "-t10").down()
    queue.waits("tasks", "--array=1-6%2", WHOLE, "-t5", priority=900)
    queue.waits("other", "-N1", WHOLE, "-t5", priority=500)


def array_of_many(queue: Queue) -> None:
    """The array has more tasks than there are nodes."""
    queue.runs("first", "-N2", WHOLE, "-t10").down()
    queue.waits("tasks", "--array=3,5,7-10", WHOLE, "-t5", priority=900)
    queue.waits("other", "-n1", "-t5", priority=500)
