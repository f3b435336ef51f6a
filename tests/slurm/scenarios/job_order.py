"""Order of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from tests.slurm.queues import PARTITIONS, WHOLE, ScenarioQueue


def tier(queue: ScenarioQueue) -> Sequence[str]:
    """A partition of a higher tier goes first on shared nodes. (The express job ends minutes before
    the small one. If they end together, slurmctld 24.11 has two answers: for the rest of a cycle it
    rounds the end of a job that backfill started in it up to the minute, so that the plain job is
    planned behind the small one.)
    """
    express = "partitionname=express"
    queue.scontrol(
        "create",
        express,
        "nodes=c[01-06]",
        "prioritytier=10",
        "maxtime=60",
        "state=down",
        undo=("delete", express),
    ).down()
    queue.submit("plain", "-N4", WHOLE, "-t30", priority=900)
    queue.submit("small", "-N2", WHOLE, "-t30", priority=800)
    queue.submit("express", "-pexpress", "-N3", WHOLE, "-t20", priority=100)
    return ("express", *PARTITIONS)


def qos_priority(queue: ScenarioQueue) -> None:
    """The second job has the better QOS and starts first."""
    queue.submit_running("first", "-N5", WHOLE, "-t30").down()
    queue.submit("normal", "-N1", WHOLE, "-t30", user="bob")
    queue.submit("high", "-N1", WHOLE, "-t30", "--qos=high", user="bob")


def submit_time(queue: ScenarioQueue) -> None:
    """Of two equal jobs the one with the lower number starts first."""
    queue.submit_running("first", "-N5", WHOLE, "-t30").down()
    for name in ("one", "two", "three"):
        queue.submit(name, "-N1", WHOLE, "-t30", priority=500)


def later_jobs_delay_nothing(queue: ScenarioQueue) -> None:
    """A later job, however small, does not start on nodes of the first job if that would delay
    it.
    """
    queue.submit_running("first", "-N5", WHOLE, "-t30").down()
    queue.submit("head", "-N2", WHOLE, "-t30", priority=900)
    queue.submit("tiny", "-n1", "-t300", priority=500)
    queue.submit("tiny-too", "-n1", "-t20", priority=400)


def several_partitions(queue: ScenarioQueue) -> None:
    """A job that may run in two partitions starts where nodes are free."""
    queue.submit_running("first", "-N6", WHOLE, "-t30").down()
    queue.submit("either", "-pcpu,gpu", "-N1", WHOLE, "-t30", priority=900)
    queue.submit("here", "-N1", WHOLE, "-t30", priority=800)
    queue.submit("there", "-pgpu", "-N2", WHOLE, "-t30", priority=700)
