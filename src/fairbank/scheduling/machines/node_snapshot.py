"""Snapshot of nodes: creation, copies, and application of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairbank.core.errors import InvalidInput
from fairbank.scheduling.machines.nodes import Nodes
from fairbank.scheduling.pending_job import Active, PendingJob, to_running
from fairbank.scheduling.placement.free_resources import Placement
from fairbank.scheduling.plan import SchedulePlan
from fairbank.scheduling.slurm.queue_order import NodeQueue
from fairbank.scheduling.snapshot import Snapshot

OnNodes = Snapshot[PendingJob, Placement, Nodes, NodeQueue]


def node_snapshot(
    nodes: Nodes, *, pending: Iterable[PendingJob] = (), running: Iterable[Active] = ()
) -> OnNodes:
    """Return a snapshot with these jobs on empty nodes.

    Args:
        nodes: nodes without jobs; the snapshot owns them from now on.
        pending: jobs of the queue, in any order.
        running: jobs that run, with their placements.

    Raises:
        InvalidInput: two jobs have the same number, or running jobs use more than a node has.
    """
    waiting, sorted_running = list(pending), sorted(running)
    numbers = Counter([job.number for job in waiting])
    numbers.update(job_running.number for job_running in sorted_running)
    if len(numbers) < numbers.total():
        number, times = numbers.most_common(1)[0]
        raise InvalidInput(
            f"job {number} is there {times} times",
            field="jobs",
            remedy="give each job and task a number of its own",
        )
    snapshot: OnNodes = Snapshot(nodes, NodeQueue(waiting))
    snapshot.running = sorted_running
    for job_running in sorted_running:
        nodes.take(job_running.placement)
    if overdrawn := nodes.free.overdrawn():
        names = nodes.cluster.names(overdrawn)
        jobs = ", ".join(
            str(number)
            for number in sorted(
                job_running.number
                for job_running in sorted_running
                if job_running.placement.nodes & overdrawn
            )
        )
        remedy = f"look which of these jobs still run there: {jobs}"
        raise InvalidInput(
            f"the jobs that run hold more of {names} than there is", field="running", remedy=remedy
        )
    return snapshot


def apply_plan(snapshot: OnNodes, plan: SchedulePlan[PendingJob, Placement], now: int) -> OnNodes:
    """Return the snapshot after the starts and preemptions of a plan.

    Args:
        snapshot: snapshot before the plan; it stays as it is.
        plan: result of a pass over this snapshot; its reservations take nothing.
        now: time of the starts in seconds since 1970.
    """
    nodes = snapshot.machine.copy()
    running = {active.number: active for active in snapshot.running}
    for job, placement in plan.starts:
        for number in placement.preempted:
            nodes.give(running.pop(number).placement)
        nodes.take(placement)
        nodes.limits.record_start(job, placement)
        running[job.number] = to_running(job, placement, now, nodes.seconds(job, placement))
    begun_now = {start.job.number for start in plan.starts}
    after: OnNodes = Snapshot(
        nodes, NodeQueue(job for job in snapshot.queue.jobs() if job.number not in begun_now)
    )
    after.running = sorted(running.values())
    return after


def replace_job(snapshot: OnNodes, changed: PendingJob) -> OnNodes:
    """Return the snapshot with this job instead of the one with its number."""
    return _with(
        snapshot,
        (changed if job.number == changed.number else job for job in snapshot.queue.jobs()),
    )


def copy_snapshot(snapshot: OnNodes) -> OnNodes:
    """Return a copy that can be changed by itself."""
    return _with(snapshot, snapshot.queue.jobs())


def _with(snapshot: OnNodes, jobs: Iterable[PendingJob]) -> OnNodes:
    other: OnNodes = Snapshot(snapshot.machine.copy(), NodeQueue(jobs))
    other.running = list(snapshot.running)
    return other
