"""Policies without reservations: first come, first served, and FIFO in each partition."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heapreplace
from typing import Any

from fairbank.scheduling.machines.machine import J, Machine, P
from fairbank.scheduling.plan import BAD_CONSTRAINTS, RESOURCES, PlannedStart, SchedulePlan
from fairbank.scheduling.snapshot import QueueOrder, Snapshot


def fcfs(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start jobs from the head on until one does not fit. A job that could never fit blocks none.
    There are no reservations.
    """
    return start_in_order(snapshot.queue.order(now), snapshot.machine.copy(), now)


def start_in_order(
    order: QueueOrder[J],
    machine: Machine[J, P],
    now: int,
    is_blocking: Callable[[J], bool] | None = None,
) -> SchedulePlan[J, P]:
    """Start jobs in order until a blocking one does not fit.

    Args:
        order: pending jobs in order.
        machine: machine that loses what the started jobs take.
        now: time in seconds.
        is_blocking: function that returns True for a job that blocks those behind if it does not
            fit; None: each does.
    """
    starts: list[PlannedStart[J, P]] = []
    reasons = dict(order.reasons)
    for _, job in order:
        placement = machine.place(job, now)
        if placement is not None:
            machine.take(placement)
            starts.append(PlannedStart(job, placement))
        elif machine.can_ever_fit(job):
            reasons[job.number] = RESOURCES
            if is_blocking is None or is_blocking(job):
                break
        else:
            reasons[job.number] = BAD_CONSTRAINTS
    return SchedulePlan(starts, (), reasons)


def fifo(snapshot: Snapshot[J, P, Any], now: int) -> SchedulePlan[J, P]:
    """Start the first job of all partitions, then the next, until each partition is blocked.

    This is how SLURM began (M. Jette and M. Grondona, "SLURM: Simple Linux Utility for Resource
    Management", 2002): when a job of a partition does not fit, no job behind it in that partition
    is tested. A job that could never fit blocks none.
    """
    machine, line = snapshot.machine.copy(), snapshot.queue.order(now)
    starts: list[PlannedStart[J, P]] = []
    started: set[int] = set()
    reasons = dict(line.reasons)
    orders = list(line.by_partition())
    next_jobs = [
        (position, partition, job)
        for partition, order in enumerate(orders)
        for position, job in (next(order),)
    ]
    heapify(next_jobs)
    while next_jobs:
        _, partition, job = next_jobs[0]
        if job.number not in started:  # from the line of another of its partitions
            placement = machine.place(job, now)
            if placement is not None:
                machine.take(placement)
                starts.append(PlannedStart(job, placement))
                started.add(job.number)
                reasons.pop(job.number, None)
            elif machine.can_ever_fit(job):
                reasons[job.number] = RESOURCES
                heappop(next_jobs)
                continue
            else:
                reasons.setdefault(job.number, BAD_CONSTRAINTS)
        following = next(orders[partition], None)
        if following is None:
            heappop(next_jobs)
        else:
            heapreplace(next_jobs, (following[0], partition, following[1]))
    return SchedulePlan(starts, (), reasons)
