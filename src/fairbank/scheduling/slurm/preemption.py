"""Preemption: by partition tier, or by QOS (slurm-rules.md, "Queue order")."""

from __future__ import annotations

from collections.abc import Container

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.scheduling.machines.nodes import Nodes, PreemptBy
from fairbank.scheduling.pending_job import Active
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest, find_placement

UINT16_MAX = 0xFFFF
"""Limit of ranks and node counts in slurmctld's comparison: it has 16 bits for each."""

Kind = tuple[str, str]
"""Partition and QOS: all that preemption depends on."""


def can_preempt(nodes: Nodes, one: Kind, other: Kind) -> bool:
    """Return True if jobs of one kind may preempt jobs of the other.

    Args:
        nodes: nodes with the rules of preemption.
        one: partition and QOS of the jobs that would preempt; the partition exists.
        other: partition and QOS of the jobs that would end; the partition may have been removed.
    """
    rules, cluster = nodes.preemption, nodes.cluster
    if rules.by is PreemptBy.NONE or preempt_mode(nodes, other) is PreemptMode.OFF:
        return False
    if rules.by is PreemptBy.QOS:
        return one[1] in rules.qos and other[1] in rules.qos[one[1]].preempts
    if other[0] not in cluster.rules:
        return False  # its partition was removed since it started
    (high, theirs), (low, others) = (cluster.partition(name) for name, _ in (one, other))
    return high.tier > low.tier and bool(theirs & others)


def preempt_mode(nodes: Nodes, kind: Kind) -> PreemptMode:
    """Return what happens to a job of this kind when it is preempted."""
    rules, (partition, qos) = nodes.preemption, kind
    if rules.by is PreemptBy.QOS:
        mode = rules.qos[qos].preempted if qos in rules.qos else None
    else:
        mode = (
            nodes.cluster.rules[partition].preempted if partition in nodes.cluster.rules else None
        )
    return rules.mode if mode is None else mode


def select_preempted(
    nodes: Nodes,
    running: list[Active],
    kind: Kind,
    among: NodeSet,
    now: int,
    *,
    spared: Container[int],
) -> list[Active]:
    """Return the running jobs that a job may preempt, in the order in which they go.

    The order is: lowest rank first, which is the priority of the QOS or the tier of the partition;
    then fewest nodes, so that few are lost; then first submitted.

    Args:
        nodes: the machine.
        running: running jobs.
        kind: partition and QOS of the job that would start.
        among: nodes that it may use.
        now: time in seconds.
        spared: numbers of jobs that this pass started: a pass does not undo its decisions. A job
            that started before it, even in the same second, is not spared.
    """
    if nodes.preemption.by is PreemptBy.NONE:
        return []
    may = {other: can_preempt(nodes, kind, other) for other in {_kind(job) for job in running}}
    candidates = [
        job_running
        for job_running in running
        if job_running.number not in spared
        and may[_kind(job_running)]
        and job_running.placement.nodes & among
        and now - job_running.started >= _exempt_seconds(nodes, job_running.job.qos)
    ]
    return sorted(
        candidates,
        key=lambda job_running: (
            _rank(nodes, job_running),
            min(job_running.placement.nodes.bit_count(), UINT16_MAX),
            job_running.number,
        ),
    )


def _rank(nodes: Nodes, running: Active) -> int:
    """Return the rank of a running job; 0 if its QOS or partition was removed."""
    if nodes.preemption.by is PreemptBy.QOS:
        qos = nodes.preemption.qos.get(running.job.qos)
        return 0 if qos is None else min(qos.priority, UINT16_MAX)
    partition = nodes.cluster.rules.get(running.placement.partition)
    return 0 if partition is None else min(partition.tier, UINT16_MAX)


def _kind(running: Active) -> Kind:
    return running.placement.partition, running.job.qos


def _exempt_seconds(nodes: Nodes, qos: str) -> int:
    rules = nodes.preemption
    return rules.qos[qos].exempt_seconds if rules.by is PreemptBy.QOS and qos in rules.qos else 0


def place_by_preemption(
    nodes: Nodes,
    free: FreeResources,
    request: PlacementRequest,
    within: NodeSet,
    candidates: list[Active],
) -> Placement | None:
    """Return the placement of the job if some of the candidates go first: one after the other until
    it fits. Only those on its nodes then go.

    Args:
        nodes: the machine.
        free: free resources now.
        within: nodes that it may use.
        candidates: jobs that it may preempt, in order.
    """
    if not candidates:
        return None
    freed = free.copy()
    freed.give_all(job.placement for job in candidates)
    if find_placement(nodes.cluster, freed, request, within) is None:
        return None
    freed, gone = free.copy(), list[Active]()
    for job in candidates:
        freed.give(job.placement)
        gone.append(job)
        if (placement := find_placement(nodes.cluster, freed, request, within)) is not None:
            return placement._replace(
                preempted=tuple(
                    sorted(job.number for job in gone if job.placement.nodes & placement.nodes)
                )
            )
    return None
