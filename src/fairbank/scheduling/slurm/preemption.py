"""Whose place a job may take, and whose it takes: by the tier of partitions that share nodes, or by QOS.

Source: docs/reference/slurm-rules.md, "Queue order"; RCAC.
"""

from __future__ import annotations

from collections.abc import Container

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.scheduling.machines.node_rules import PreemptBy
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active
from fairbank.scheduling.placement.free_resources import FreeResources, Placement
from fairbank.scheduling.placement.node_set import NodeSet
from fairbank.scheduling.placement.search import PlacementRequest, find_placement

MOST = 0xFFFF
"""As far as slurmctld counts ranks and nodes when it weighs those whose place may be taken: it has 16 bits for each."""

Kind = tuple[str, str]
"""A partition and a QOS: all that preemption knows of a job."""


def may_preempt(nodes: Nodes, one: Kind, other: Kind) -> bool:
    """Whether jobs of one kind may take the place of those of the other."""
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
    """What becomes of a job of this kind when its place is taken."""
    rules, (partition, qos) = nodes.preemption, kind
    if rules.by is PreemptBy.QOS:
        said = rules.qos[qos].preempted if qos in rules.qos else None
    else:
        said = (
            nodes.cluster.rules[partition].preempted if partition in nodes.cluster.rules else None
        )
    return rules.mode if said is None else said


def select_preempted(
    nodes: Nodes,
    running: list[Active],
    kind: Kind,
    among: NodeSet,
    now: int,
    *,
    spared: Container[int],
) -> list[Active]:
    """The jobs on these nodes whose place a job of this kind may take: those of the lowest rank first, by the priority of their QOS or the
    tier of their partition, whichever decides; then those with the fewest nodes, so that few are lost, and of these whoever was submitted
    first.

    `spared`: the numbers of those whom the pass has started itself, for what it decides it does not undo. Who started before it, be it in
    the same second, is not spared.
    """
    if nodes.preemption.by is PreemptBy.NONE:
        return []
    may = {other: may_preempt(nodes, kind, other) for other in {_kind(job) for job in running}}
    found = [
        each
        for each in running
        if each.number not in spared
        and may[_kind(each)]
        and each.placement.nodes & among
        and now - each.started >= _exempt_seconds(nodes, each.job.qos)
    ]
    return sorted(
        found,
        key=lambda each: (
            _rank(nodes, each),
            min(each.placement.nodes.bit_count(), MOST),
            each.number,
        ),
    )


def _rank(nodes: Nodes, running: Active) -> int:
    """How much the loss of it weighs before its nodes are counted. Nothing where its QOS or partition was removed since it started."""
    if nodes.preemption.by is PreemptBy.QOS:
        qos = nodes.preemption.qos.get(running.job.qos)
        return 0 if qos is None else min(qos.priority, MOST)
    partition = nodes.cluster.rules.get(running.placement.partition)
    return 0 if partition is None else min(partition.tier, MOST)


def _kind(running: Active) -> Kind:
    return running.placement.partition, running.job.qos


def _exempt_seconds(nodes: Nodes, qos: str) -> int:
    rules = nodes.preemption
    return rules.qos[qos].exempt_seconds if rules.by is PreemptBy.QOS and qos in rules.qos else 0


def place_by_preemption(
    nodes: Nodes,
    room: FreeResources,
    request: PlacementRequest,
    within: NodeSet,
    those: list[Active],
) -> Placement | None:
    """Where the job goes if some of those go first: one after the other until there is room, and then only those who were in the way."""
    if not those:
        return None
    freed = room.copy()
    freed.give_all(job.placement for job in those)
    if find_placement(nodes.cluster, freed, request, within) is None:
        return None
    freed, gone = room.copy(), list[Active]()
    for job in those:
        freed.give(job.placement)
        gone.append(job)
        if (found := find_placement(nodes.cluster, freed, request, within)) is not None:
            return found._replace(
                instead=tuple(
                    sorted(job.number for job in gone if job.placement.nodes & found.nodes)
                )
            )
    return None
