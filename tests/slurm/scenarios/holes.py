"""Holes before the planned start of a waiting job."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, Queue


def hole_just_fits(queue: Queue) -> None:
    """Two nodes are free for ten minutes before a job of all six: a job of nine minutes fits, one
    of thirty does not.
    """
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("short", "-N1", WHOLE, "-t9", priority=500)
    queue.waits("long", "-N1", WHOLE, "-t30", priority=400)


def hole_just_not(queue: Queue) -> None:
    """A job of eleven minutes does not fit before a job that is planned in ten."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("eleven", "-N2", WHOLE, "-t11", priority=500)


def hole_for_a_shorter_one(queue: Queue) -> None:
    """A job that accepts five of its sixty minutes gets as many as are free."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("all", "-N6", WHOLE, "-t60", priority=900)
    queue.waits("modest", "-N1", WHOLE, "-t60", "--time-min=5", priority=500)


def nodes_beside_the_plan(queue: Queue) -> None:
    """A plan for three nodes leaves one node for any length of time."""
    queue.runs("first", "-N4", WHOLE, "-t10").down()
    queue.waits("three", "-N3", WHOLE, "-t60", priority=900)
    queue.waits("long", "-N1", WHOLE, "-t600", priority=500)
    queue.waits("longer", "-N2", WHOLE, "-t600", priority=400)
