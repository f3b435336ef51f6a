"""Holes that a plan leaves, before and after more jobs, compared with the node profile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairbank.scheduling.machines.processors import Holes
from fairbank.scheduling.snapshot import RemainingHoles
from tests.scheduling.processors import ProcessorRequest, ahead, runs

resource_requests = st.lists(
    st.builds(ProcessorRequest, st.integers(1, 8), st.integers(1, 10)), min_size=1, max_size=8
)


@given(runs, resource_requests)
def test_holes_agree_with_backfill_steps(
    running: list[tuple[int, int]], requests: list[ProcessorRequest]
) -> None:
    steps, head = ahead(running), ProcessorRequest(8, 5)
    steps.take(head, steps.earliest_slot(head))
    left: Holes[ProcessorRequest] = Holes(RemainingHoles(0, steps.holes()), 0)
    for request in requests:
        result = steps.slot_now(request)
        assert left.slot_now(request) == result
        if result is not None:
            left.take(request, result)
            steps.take(request, result)
        assert left.holes() == steps.holes()


def test_time_shortens_gaps() -> None:
    left: Holes[ProcessorRequest] = Holes(RemainingHoles(100, [(2, 1_000), (5, 60)]), 110)
    assert left.holes() == [(2, 990), (5, 50)]
    assert left.slot_now(ProcessorRequest(5, 50)) == (110, 160, 5)
    assert left.slot_now(ProcessorRequest(5, 51)) is None
