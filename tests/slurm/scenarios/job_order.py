"""Order of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.slurm.queues import PARTITIONS, WHOLE, Queue


def tier(queue: Queue) -> Sequence[str]:
    """A partition of a higher tier goes first on shared nodes. (The express job ends minutes before
    the small one. If they end together, slurmctld 24.11 has two answers: for the rest of a cycle it
    rounds the end of a job that backfill started in it up to the minute, so that the plain job is
    planned behind the small one.)
    """
    express = "partitionname=express"
    queue.tell(
        "create",
        express,
        "nodes=c[01-06]",
        "prioritytier=10",
        "maxtime=60",
        "state=down",
        undo=("delete", express),
    ).down()
    queue.waits("plain", "-N4", WHOLE, "-t30", priority=900)
    queue.waits("small", "-N2", WHOLE, "-t30", priority=800)
    queue.waits("express", "-pexpress", "-N3", WHOLE, "-t20", priority=100)
    return ("express", *PARTITIONS)


def qos_priority(queue: Queue) -> None:
    """The second job has the better QOS and starts first."""
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("normal", "-N1", WHOLE, "-t30", user="bob")
    queue.waits("high", "-N1", WHOLE, "-t30", "--qos=high", user="bob")


def submit_time(queue: Queue) -> None:
    """Of two equal jobs the one with the lower number starts first."""
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    for name in ("one", "two", "three"):
        queue.waits(name, "-N1", WHOLE, "-t30", priority=500)


def those_behind_wait(queue: Queue) -> None:
    """A later job, however small, does not start on nodes of the first job if that would delay
    it.
    """
    queue.runs("first", "-N5", WHOLE, "-t30").down()
    queue.waits("head", "-N2", WHOLE, "-t30", priority=900)
    queue.waits("tiny", "-n1", "-t300", priority=500)
    queue.waits("tiny-too", "-n1", "-t20", priority=400)


def several_partitions(queue: Queue) -> None:
    """A job that may run in two partitions starts where nodes are free."""
    queue.runs("first", "-N6", WHOLE, "-t30").down()
    queue.waits("either", "-pcpu,gpu", "-N1", WHOLE, "-t30", priority=900)
    queue.waits("here", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("there", "-pgpu", "-N2", WHOLE, "-t30", priority=700)
