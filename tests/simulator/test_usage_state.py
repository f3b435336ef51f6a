"""Usage and priorities by period, over jobs that no trace has."""

from __future__ import annotations

from fairbank.scheduling.machines.priority_queue import PriorityQueue
from fairbank.scheduling.snapshot import RunningJob
from fairbank.simulator.engine.usage_state import PriorityRules, ShareAccounts, UsageState
from tests.scheduling.processors import ProcessorRequest

ADA, BOB, PERIOD = 1, 2, 300


def job(number: int, user: int, processors: int = 1) -> ProcessorRequest:
    return ProcessorRequest(processors, 3_600, number, user=user)


def order(
    state: UsageState[ProcessorRequest], queue: PriorityQueue[ProcessorRequest], now: int
) -> list[int]:
    state.update(queue, [], now)
    return [one.number for _, one in queue.order(now)]


def queue_of(
    state: UsageState[ProcessorRequest], *jobs: ProcessorRequest
) -> PriorityQueue[ProcessorRequest]:
    queue: PriorityQueue[ProcessorRequest] = PriorityQueue(state.user_of)
    for one in jobs:
        queue.add(one)
    return queue


def test_usage_counts_from_the_next_period_on() -> None:
    state: UsageState[ProcessorRequest] = UsageState(PriorityRules(calc_period=PERIOD), 4)
    queue = queue_of(state, job(1, ADA), job(2, BOB))
    ran = RunningJob(3_600, 0, 4, job(0, ADA, 4), 0)
    state.record_end(ran, 200)
    assert order(state, queue, PERIOD - 1) == [1, 2], "no period has begun since"
    assert order(state, queue, PERIOD) == [2, 1]


def test_larger_share_goes_first_at_equal_usage() -> None:
    shares = ShareAccounts({ADA: 1, BOB: 3})
    state: UsageState[ProcessorRequest] = UsageState(PriorityRules(calc_period=PERIOD), 4, shares)
    queue = queue_of(state, job(1, ADA), job(2, BOB))
    for user in (ADA, BOB):
        state.record_end(RunningJob(3_600, 0, 1, job(0, user), 0), 200)
    assert order(state, queue, PERIOD) == [2, 1]
