"""Usage and priorities by period, over jobs that no trace has."""

from __future__ import annotations

from typing import NamedTuple

from fairbank.jobqueue.usage_state import PriorityRules, ShareAccounts, UsageState
from fairbank.scheduling.machines.priority_queue import PriorityQueue
from fairbank.scheduling.snapshot import RunningJob

ADA, BOB, PERIOD = 1, 2, 300


class Job(NamedTuple):
    """Job on one processor."""

    number: int
    user: int
    submitted: int = 0
    processors: int = 1
    limit: int = 3_600
    partition: int = 0
    group: int = -1


def order(state: UsageState[Job], queue: PriorityQueue[Job], now: int) -> list[int]:
    state.update(queue, [], now)
    return [job.number for _, job in queue.order(now)]


def queue_of(state: UsageState[Job], *jobs: Job) -> PriorityQueue[Job]:
    queue: PriorityQueue[Job] = PriorityQueue(state.user_of)
    for job in jobs:
        queue.add(job)
    return queue


def test_usage_counts_from_the_next_period_on() -> None:
    state: UsageState[Job] = UsageState(PriorityRules(calc_period=PERIOD), 4)
    queue = queue_of(state, Job(1, ADA), Job(2, BOB))
    ran = RunningJob(3_600, 0, 4, Job(0, ADA, processors=4), 0)
    state.record_end(ran, 200)
    assert order(state, queue, PERIOD - 1) == [1, 2], "no period has begun since"
    assert order(state, queue, PERIOD) == [2, 1]


def test_larger_share_goes_first_at_equal_usage() -> None:
    shares = ShareAccounts({ADA: 1, BOB: 3})
    state: UsageState[Job] = UsageState(PriorityRules(calc_period=PERIOD), 4, shares)
    queue = queue_of(state, Job(1, ADA), Job(2, BOB))
    for user in (ADA, BOB):
        state.record_end(RunningJob(3_600, 0, 1, Job(0, user), 0), 200)
    assert order(state, queue, PERIOD) == [2, 1]
