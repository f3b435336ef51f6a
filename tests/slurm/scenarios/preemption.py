"""Preemption of running jobs."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.machines.nodes import PreemptBy
from tests.slurm.queues import PARTITIONS, WHOLE, Scenario, ScenarioQueue


def preempted_by_qos(queue: ScenarioQueue) -> None:
    """Jobs of QOS high preempt only jobs of QOS low. (All nodes that become free are used: the
    first of them may be free a moment before the others.)
    """
    queue.sacctmgr("modify", "qos", "high", "set", "preempt=low")
    queue.submit_running("low", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.submit_running("low-too", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.submit_running("normal", "-N2", WHOLE, "-t30").down()
    queue.submit("urgent", "--qos=high", "-N4", WHOLE, "-t30", user="bob", priority=900)
    queue.submit("behind", "-N1", WHOLE, "-t30", priority=800)
    queue.submit("urgent-too", "--qos=high", "-N3", WHOLE, "-t30", user="bob", priority=700)


def only_needed_jobs_are_preempted(queue: ScenarioQueue) -> None:
    """One node is idle, and preempting one of three low jobs is sufficient."""
    queue.sacctmgr("modify", "qos", "high", "set", "preempt=low")
    for name in ("one", "two", "three"):
        queue.submit_running(name, "--qos=low", "-N1", WHOLE, "-t30", user="bob")
    queue.submit_running("normal", "-N2", WHOLE, "-t30").down()
    queue.submit("urgent", "--qos=high", "-N2", WHOLE, "-t30", user="bob", priority=900)


def lowest_qos_is_preempted_first(queue: ScenarioQueue) -> None:
    """Of two jobs that may be preempted, the one of the QOS with the lower priority is, though it
    started later and has more nodes.
    """
    queue.sacctmgr("modify", "qos", "high", "set", "preempt=low,normal")
    queue.submit_running("low", "--qos=low", "-N1", WHOLE, "-t30", user="bob")
    queue.submit_running("normal", "-N2", WHOLE, "-t30").submit_running(
        "high", "--qos=high", "-N3", WHOLE, "-t30"
    ).down()
    queue.submit("urgent", "--qos=high", "-N2", WHOLE, "-t30", user="bob", priority=900)


def smallest_job_is_preempted_first(queue: ScenarioQueue) -> None:
    """Priorities are equal: the job with the fewest nodes is preempted, though it started later."""
    queue.sacctmgr("modify", "qos", "high", "set", "preempt=low")
    queue.submit_running("big", "--qos=low", "-N2", WHOLE, "-t30", user="bob").submit_running(
        "small", "--qos=low", "-N1", WHOLE, "-t30", user="bob"
    )
    queue.submit_running("normal", "-N3", WHOLE, "-t30").down()
    queue.submit("urgent", "--qos=high", "-N1", WHOLE, "-t30", user="bob", priority=900)


def preempted_by_partition(queue: ScenarioQueue) -> Sequence[str]:
    """Jobs of a partition of a higher tier preempt those of a lower tier on shared nodes."""
    express = "partitionname=express"
    queue.submit_running("plain", "-N4", WHOLE, "-t30").submit_running(
        "small", "-N1", WHOLE, "-t30"
    )
    queue.scontrol(
        "create",
        express,
        "nodes=c[01-06]",
        "prioritytier=10",
        "maxtime=60",
        "state=down",
        undo=("delete", express),
    ).down()
    queue.submit("express", "-pexpress", "-N2", WHOLE, "-t30", priority=100)
    queue.submit("waits", "-N3", WHOLE, "-t30", priority=900)
    return ("express", *PARTITIONS)


PREEMPTING: tuple[tuple[PreemptBy, Scenario], ...] = (
    (PreemptBy.QOS, preempted_by_qos),
    (PreemptBy.QOS, only_needed_jobs_are_preempted),
    (PreemptBy.QOS, lowest_qos_is_preempted_first),
    (PreemptBy.QOS, smallest_job_is_preempted_first),
    (PreemptBy.PARTITION, preempted_by_partition),
)
