"""Free identical processors over time, compared with a list of seconds."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from fairbank.scheduling.machines.processors import TimeSlot
from fairbank.scheduling.snapshot import FOR_EVER
from tests.scheduling.processors import SIZE, ProcessorRequest, ahead, resource_requests, runs

HOUR = 3_600


def test_six_nodes_are_idle_and_two_come_free_in_three_hours() -> None:
    """Example of RCAC: a job waits for eight nodes. Until it starts, only jobs that end within
    three hours may use the six.
    """
    steps, eight = ahead([(3 * HOUR, 2)]), ProcessorRequest(8, HOUR)
    slot = steps.earliest_slot(eight)
    assert slot == (3 * HOUR, 4 * HOUR, 8)
    steps.take(eight, slot)
    assert steps.holes() == [(6, 3 * HOUR)]
    assert (
        steps.slot_now(ProcessorRequest(6, 3 * HOUR))
        == steps.earliest_slot(ProcessorRequest(6, 3 * HOUR))
        == (0, 3 * HOUR, 6)
    )
    assert steps.slot_now(ProcessorRequest(6, 3 * HOUR + 1)) is None
    assert steps.earliest_slot(ProcessorRequest(6, 3 * HOUR + 1)) == (4 * HOUR, 7 * HOUR + 1, 6)


def test_processors_of_a_job_beyond_its_limit_are_not_free() -> None:
    """The job should have ended ten seconds ago, and may end at any second."""
    steps = ahead([(90, 3)], now=100)
    assert steps.holes() == [(5, FOR_EVER)]
    assert steps.earliest_slot(ProcessorRequest(6, 10)) == (101, 111, 6)


@example(
    [(5, 2), (5, 2)],
    [
        ProcessorRequest(5, 3),
        ProcessorRequest(8, 1),
        ProcessorRequest(2, 8),
        ProcessorRequest(2, 8),
    ],
    False,
    {3},
)
@given(runs, resource_requests, st.booleans(), st.sets(st.integers(0, 7)))
def test_profile_equals_a_list_of_seconds(
    running: list[tuple[int, int]], requests: list[ProcessorRequest], first: bool, looks: set[int]
) -> None:
    """The reference has a count for each second. Each query takes the slot that it returns, which
    changes the next answers. Holes are queried at some steps only, because answers must not depend
    on queries.
    """
    seconds = [SIZE - sum(n for end, n in running if second < end) for second in range(400)]
    steps = ahead(running)
    for turn, request in enumerate(requests):
        begin = next(
            at for at in range(300) if min(seconds[at : at + request.limit]) >= request.processors
        )
        slot = TimeSlot(begin, begin + request.limit, request.processors)
        assert turn not in looks or steps.slot_now(request) == (None if begin else slot)
        if begin and first:
            continue  # only those who start now
        assert steps.earliest_slot(request) == slot
        steps.take(request, slot)
        seconds[begin : slot.end] = [
            free - request.processors for free in seconds[begin : slot.end]
        ]
        assert turn not in looks or steps.holes() == gaps(seconds)


def gaps(seconds: list[int]) -> list[tuple[int, int]]:
    falls = [at for at in range(1, len(seconds)) if seconds[at] < min(seconds[:at])]
    counts = [seconds[0], *(seconds[at] for at in falls)]
    return [(free, until) for free, until in zip(counts, [*falls, FOR_EVER], strict=True) if free][
        ::-1
    ]
