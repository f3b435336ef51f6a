"""Schedules by definition: second by second, over plain lists, without optimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairbank.simulator.traces.workload import TraceJob

Free = list[int]
"""Processors that are free, second after second from now on, if everybody who runs uses the whole
limit.
"""
Choose = Callable[[list[TraceJob], Free], list[TraceJob]]
"""Of those who wait, in the order of the queue, who starts now."""


def schedule(jobs: Sequence[TraceJob], size: int, choose: Choose) -> list[int]:
    """Return the start time of each job. At every second: first the ends, then the arrivals, then
    one pass.
    """
    starts: dict[int, int] = {}
    waiting: list[TraceJob] = []
    running: list[TraceJob] = []
    now = -1
    while len(starts) < len(jobs):
        now += 1
        ended = [job for job in running if starts[job.number] + job.run == now]
        arrived = [job for job in jobs if job.submitted == now]
        if not (ended or arrived):
            continue
        running = [job for job in running if job not in ended]
        waiting += arrived
        ends = [(starts[job.number] + job.limit, job.processors) for job in running]
        horizon = now + sum(job.limit for job in (*running, *waiting)) + 1
        free = [
            size - sum(wide for end, wide in ends if second < end) for second in range(now, horizon)
        ]
        for job in choose(waiting.copy(), free):
            starts[job.number] = now
            waiting.remove(job)
            running.append(job)
    return [starts[job.number] for job in jobs]


def take(free: Free, job: TraceJob, begin: int = 0) -> None:
    for second in range(begin, min(begin + job.limit, len(free))):
        free[second] -= job.processors


def fits(free: Free, job: TraceJob, begin: int = 0) -> bool:
    return min(free[begin : begin + job.limit]) >= job.processors


def fcfs(waiting: list[TraceJob], free: Free) -> list[TraceJob]:
    starts = []
    for job in waiting:
        if job.processors > free[0]:
            break
        take(free, job)
        starts.append(job)
    return starts


def fifo(waiting: list[TraceJob], free: Free) -> list[TraceJob]:
    starts: list[TraceJob] = []
    blocked: set[int] = set()
    for job in waiting:
        if job.partition in blocked:
            continue
        if job.processors > free[0]:
            blocked.add(job.partition)
        else:
            take(free, job)
            starts.append(job)
    return starts


def easy(waiting: list[TraceJob], free: Free) -> list[TraceJob]:
    starts = fcfs(waiting, free)
    if len(starts) == len(waiting):
        return starts
    head, *others = waiting[len(starts) :]
    shadow = next(second for second in range(len(free)) if free[second] >= head.processors)
    idle, extra = free[0], free[shadow] - head.processors
    for job in others:
        if job.processors <= idle and (job.limit <= shadow or job.processors <= extra):
            idle -= job.processors
            extra -= job.processors if job.limit > shadow else 0
            starts.append(job)
    return starts


def conservative(waiting: list[TraceJob], free: Free) -> list[TraceJob]:
    starts = []
    for job in waiting:
        begin = next(second for second in range(len(free)) if fits(free, job, second))
        take(free, job, begin)
        if begin == 0:
            starts.append(job)
    return starts
