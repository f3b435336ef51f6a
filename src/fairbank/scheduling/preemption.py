"""Whose place a job may take, and whose it takes: by the tier of partitions that share nodes, or by QOS (facts, section 5.2; seed 002)."""

from __future__ import annotations

from fairbank.cluster.partition_rules import PreemptMode
from fairbank.scheduling.pending import Active
from fairbank.scheduling.placement.nodeset import NodeSet
from fairbank.scheduling.placement.placing import Request, place
from fairbank.scheduling.placement.room import Placement, Room
from fairbank.scheduling.situation import PreemptBy, Situation

Kind = tuple[str, str]
"""A partition and a QOS: all that preemption knows of a job."""


def may_preempt(situation: Situation, one: Kind, other: Kind) -> bool:
    """Whether jobs of one kind may take the place of those of the other."""
    rules = situation.preemption
    if rules.by is PreemptBy.NONE or mode(situation, other) is PreemptMode.OFF:
        return False
    if rules.by is PreemptBy.QOS:
        return one[1] in rules.qos and other[1] in rules.qos[one[1]].preempts
    (high, theirs), (low, others) = (situation.cluster.partition(name) for name, _ in (one, other))
    return high.tier > low.tier and bool(theirs & others)


def mode(situation: Situation, kind: Kind) -> PreemptMode:
    """What becomes of a job of this kind when its place is taken."""
    rules, (partition, qos) = situation.preemption, kind
    if rules.by is PreemptBy.QOS:
        said = rules.qos[qos].preempted if qos in rules.qos else None
    else:
        said = situation.cluster.partition(partition)[0].preempted
    return rules.mode if said is None else said


def victims(situation: Situation, running: list[Active], kind: Kind, among: NodeSet, now: int) -> list[Active]:
    """The jobs on these nodes whose place a job of this kind may take, those of the lowest priority first, and of these the youngest.

    Whoever started just now is none: what a pass decides it does not undo.
    """
    if situation.preemption.by is PreemptBy.NONE:
        return []
    may = {other: may_preempt(situation, kind, other) for other in {(job.partition, job.qos) for job in running}}
    found = [
        job
        for job in running
        if job.started < now and may[job.partition, job.qos] and job.nodes & among and now - job.started >= _exempt_seconds(situation, job)
    ]
    return sorted(found, key=lambda job: (job.priority, -job.started, job.number))


def _exempt_seconds(situation: Situation, job: Active) -> int:
    rules = situation.preemption
    return rules.qos[job.qos].exempt_seconds if rules.by is PreemptBy.QOS and job.qos in rules.qos else 0


def place_instead(situation: Situation, room: Room, request: Request, within: NodeSet, those: list[Active]) -> Placement | None:
    """Where the job goes if some of those go first: one after the other until there is room, and then only those who were in the way."""
    if not those:
        return None
    freed = room.copy()
    freed.give_all(job.placement for job in those)
    if place(situation.cluster, freed, request, within) is None:
        return None
    freed, gone = room.copy(), list[Active]()
    for job in those:
        freed.give(job.placement)
        gone.append(job)
        if (found := place(situation.cluster, freed, request, within)) is not None:
            return found._replace(instead=tuple(sorted(job.number for job in gone if job.nodes & found.nodes)))
    return None
