"""Preemption: jobs that take the place of others."""

from __future__ import annotations

from collections.abc import Sequence

from fairbank.scheduling.machines.nodes import PreemptBy
from tests.slurm.queues import PARTITIONS, WHOLE, Queue, Scenario


def preempted_by_qos(queue: Queue) -> None:
    """Those of QOS high take the place of those of QOS low, and of nobody else. (All nodes that
    come free are taken: the first of them may be free a moment before the others.)
    """
    queue.account("modify", "qos", "high", "set", "preempt=low")
    queue.runs("low", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.runs("low-too", "--qos=low", "-N2", WHOLE, "-t30", user="bob")
    queue.runs("normal", "-N2", WHOLE, "-t30").down()
    queue.waits("urgent", "--qos=high", "-N4", WHOLE, "-t30", user="bob", priority=900)
    queue.waits("behind", "-N1", WHOLE, "-t30", priority=800)
    queue.waits("urgent-too", "--qos=high", "-N3", WHOLE, "-t30", user="bob", priority=700)


def no_more_preempted_than_needed(queue: Queue) -> None:
    """One node is idle, and one of three low jobs is enough."""
    queue.account("modify", "qos", "high", "set", "preempt=low")
    for name in ("one", "two", "three"):
        queue.runs(name, "--qos=low", "-N1", WHOLE, "-t30", user="bob")
    queue.runs("normal", "-N2", WHOLE, "-t30").down()
    queue.waits("urgent", "--qos=high", "-N2", WHOLE, "-t30", user="bob", priority=900)


def the_lowest_qos_goes_first(queue: Queue) -> None:
    """Of two whose place may be taken the one of the QOS with the lower priority goes, though it
    came later and has more nodes.
    """
    queue.account("modify", "qos", "high", "set", "preempt=low,normal")
    queue.runs("low", "--qos=low", "-N1", WHOLE, "-t30", user="bob")
    queue.runs("normal", "-N2", WHOLE, "-t30").runs(
        "high", "--qos=high", "-N3", WHOLE, "-t30"
    ).down()
    queue.waits("urgent", "--qos=high", "-N2", WHOLE, "-t30", user="bob", priority=900)


def of_one_qos_the_smallest_goes_first(queue: Queue) -> None:
    """Priorities are equal: the job with the fewest nodes goes, though it came later."""
    queue.account("modify", "qos", "high", "set", "preempt=low")
    queue.runs("big", "--qos=low", "-N2", WHOLE, "-t30", user="bob").runs(
        "small", "--qos=low", "-N1", WHOLE, "-t30", user="bob"
    )
    queue.runs("normal", "-N3", WHOLE, "-t30").down()
    queue.waits("urgent", "--qos=high", "-N1", WHOLE, "-t30", user="bob", priority=900)


def preempted_by_partition(queue: Queue) -> Sequence[str]:
    """Jobs of a partition of a higher tier take the place of those of a lower one on the nodes of
    both.
    """
    express = "partitionname=express"
    queue.runs("plain", "-N4", WHOLE, "-t30").runs("small", "-N1", WHOLE, "-t30")
    queue.tell(
        "create",
        express,
        "nodes=c[01-06]",
        "prioritytier=10",
        "maxtime=60",
        "state=down",
        undo=("delete", express),
    ).down()
    queue.waits("express", "-pexpress", "-N2", WHOLE, "-t30", priority=100)
    queue.waits("waits", "-N3", WHOLE, "-t30", priority=900)
    return ("express", *PARTITIONS)


PREEMPTING: tuple[tuple[PreemptBy, Scenario], ...] = (
    (PreemptBy.QOS, preempted_by_qos),
    (PreemptBy.QOS, no_more_preempted_than_needed),
    (PreemptBy.QOS, the_lowest_qos_goes_first),
    (PreemptBy.QOS, of_one_qos_the_smallest_goes_first),
    (PreemptBy.PARTITION, preempted_by_partition),
)
