"""A snapshot of nodes: how it is put together, and what becomes of it when a plan is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.slurm.queue_order import Ranked
from fairbank.scheduling.pending_job import (Active, Pending, begun)
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import Plan
from fairbank.scheduling.snapshot import Snapshot
from fairbank.core.errors import Malformed

OnNodes = Snapshot[Pending, Placement, Nodes]


def on_nodes(
    nodes: Nodes, *, pending: Iterable[Pending] = (), running: Iterable[Active] = ()
) -> OnNodes:
    """Those wait and run on these nodes, where nobody was. The nodes are the snapshot's from now on.

    Raises Malformed for two jobs of one number, and for running jobs that hold more than there is.
    """
    waiting, there = list(pending), sorted(running)
    numbers = Counter([job.number for job in waiting])
    numbers.update(each.number for each in there)
    if len(numbers) < numbers.total():
        number, times = numbers.most_common(1)[0]
        raise Malformed(
            f"job {number} is there {times} times",
            field="jobs",
            remedy="give each job and task a number of its own",
        )
    snapshot: OnNodes = Snapshot(nodes, Ranked(nodes, waiting))
    snapshot.running = there
    for each in there:
        nodes.take(each.placement)
    if wrong := nodes.room.overdrawn():
        names = nodes.cluster.names(wrong)
        jobs = ", ".join(
            str(number)
            for number in sorted(each.number for each in there if each.placement.nodes & wrong)
        )
        remedy = f"look which of these jobs still run there: {jobs}"
        raise Malformed(
            f"the jobs that run hold more of {names} than there is", field="running", remedy=remedy
        )
    return snapshot


def carried_out(snapshot: OnNodes, plan: Plan[Pending, Placement], now: int) -> OnNodes:
    """What is there when those have started whom the plan starts, one after the other, and those went whose place they took."""
    nodes = snapshot.machine.copy()
    running = {each.number: each for each in snapshot.running}
    for job, where in plan.starts:
        for number in where.instead:
            nodes.give(running.pop(number).placement)
        nodes.take(where)
        nodes.limits.started(job, where)
        running[job.number] = begun(job, where, now, nodes.seconds(job, where))
    begun_now = {start.job.number for start in plan.starts}
    after: OnNodes = Snapshot(
        nodes, Ranked(nodes, (job for job in snapshot.queue.jobs() if job.number not in begun_now))
    )
    after.running = sorted(running.values())
    return after


def with_job(snapshot: OnNodes, changed: Pending) -> OnNodes:
    """The same, with this job in the place of the one of its number."""
    return _with(
        snapshot,
        (changed if job.number == changed.number else job for job in snapshot.queue.jobs()),
    )


def copied(snapshot: OnNodes) -> OnNodes:
    """The same, to be played with."""
    return _with(snapshot, snapshot.queue.jobs())


def _with(snapshot: OnNodes, jobs: Iterable[Pending]) -> OnNodes:
    nodes = snapshot.machine.copy()
    other: OnNodes = Snapshot(nodes, Ranked(nodes, jobs))
    other.running = list(snapshot.running)
    return other
