"""Holes before the planned start of a waiting job."""

from __future__ import annotations

from tests.slurm.queues import WHOLE, ScenarioQueue


def hole_just_fits(queue: ScenarioQueue) -> None:
    """Two nodes are free for ten minutes before a job of all six: a job of nine minutes fits, one
    of thirty does not.
    """
    queue.submit_running("first", "-N4", WHOLE, "-t10").down()
    queue.submit("all", "-N6", WHOLE, "-t60", priority=900)
    queue.submit("short", "-N1", WHOLE, "-t9", priority=500)
    queue.submit("long", "-N1", WHOLE, "-t30", priority=400)


def hole_too_short(queue: ScenarioQueue) -> None:
    """A job of eleven minutes does not fit before a job that is planned in ten."""
    queue.submit_running("first", "-N4", WHOLE, "-t10").down()
    queue.submit("all", "-N6", WHOLE, "-t60", priority=900)
    queue.submit("eleven", "-N2", WHOLE, "-t11", priority=500)


def hole_for_a_minimum_time(queue: ScenarioQueue) -> None:
    """A job that accepts five of its sixty minutes gets as many as are free."""
    queue.submit_running("first", "-N4", WHOLE, "-t10").down()
    queue.submit("all", "-N6", WHOLE, "-t60", priority=900)
    queue.submit("modest", "-N1", WHOLE, "-t60", "--time-min=5", priority=500)


def nodes_outside_the_plan(queue: ScenarioQueue) -> None:
    """A plan for three nodes leaves one node for any length of time."""
    queue.submit_running("first", "-N4", WHOLE, "-t10").down()
    queue.submit("three", "-N3", WHOLE, "-t60", priority=900)
    queue.submit("long", "-N1", WHOLE, "-t600", priority=500)
    queue.submit("longer", "-N2", WHOLE, "-t600", priority=400)


def end_of_a_job_started_in_the_cycle(queue: ScenarioQueue) -> None:
    """The first running job ends behind bf_window, and so would the job at the head of the queue
    begin. Backfill starts `quick` on shared nodes: `wide` is planned for its end in the same
    cycle, and holds off `long`.
    """
    queue.submit_running("first", "--partition=gpu", "--nodelist=g01", "-c12", "-t2-0").down()
    queue.submit("all", "--partition=gpu", "-N2", WHOLE, "-t60", priority=900)
    queue.submit("quick", "--partition=gpu", "-N2", "-c24", "-t10", priority=800)
    queue.submit("wide", "--partition=gpu", "-N2", "-c36", "-t60", priority=700)
    queue.submit("long", "--partition=gpu", "-N1", "-c12", "-t30", priority=600)
