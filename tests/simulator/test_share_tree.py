"""Shares of users and groups in the fair share of a simulated Slurm."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.priority.settings import Algorithm
from fairbank.scheduling.slurm.parameters import SchedulerParameters
from fairbank.simulator.engine.clock import SimulationClock
from fairbank.simulator.engine.slurm import SlurmScheduler
from fairbank.simulator.engine.usage_state import PriorityRules, ShareAccounts
from fairbank.simulator.traces.workload import TraceJob

HOUR = 3_600
DAY = 24 * HOUR


def job(
    number: int, submitted: int, user: int, group: int = 1, processors: int = 4, limit: int = HOUR
) -> TraceJob:
    return TraceJob(number, submitted, processors, limit, limit, 1, number, user, group)


def starts(
    jobs: Sequence[TraceJob],
    entitled: ShareAccounts | None,
    algorithm: Algorithm = Algorithm.FAIR_TREE,
) -> list[int]:
    clock = SimulationClock(
        4, SlurmScheduler(SchedulerParameters(), PriorityRules(algorithm=algorithm), 4, entitled)
    )
    result = {job.number: at for at, begun in clock.run(jobs) for job in begun}
    return [result[job.number] for job in jobs]


DAYS_OF_EACH = [job(0, 0, user=1, limit=DAY), job(1, 5, user=2, limit=DAY)]
THEN = [job(2, 10, user=1), job(3, 20, user=2)]


@pytest.mark.parametrize("algorithm", list(Algorithm))
@pytest.mark.parametrize(
    ("shares", "first"), [({1: 1, 2: 30}, 3), ({1: 30, 2: 1}, 2), ({2: 1}, 3), ({1: 1}, 2)]
)
def test_same_usage_more_shares_go_first(
    algorithm: Algorithm, shares: dict[int, int], first: int
) -> None:
    """An account that is not in the file has no shares."""
    result = starts([*DAYS_OF_EACH, *THEN], ShareAccounts(shares), algorithm)
    assert min((2, 3), key=result.__getitem__) == first


@pytest.mark.parametrize(
    ("shares", "order"), [({1: 1, 2: 30}, [5, 4, 3]), ({1: 60, 2: 1}, [4, 3, 5])]
)
def test_shares_of_groups_are_divided_among_their_users(
    shares: dict[int, int], order: list[int]
) -> None:
    """Ada and Bob are in the first group, and only Ada has usage. Cy is alone in the second."""
    before = [job(0, 0, 1, group=1, limit=DAY), job(1, 5, 3, group=2, limit=DAY)]
    then = [
        job(2, 10, 9, group=9),
        job(3, 20, 1, group=1),
        job(4, 30, 2, group=1),
        job(5, 40, 3, group=2),
    ]
    result = starts([*before, *then], ShareAccounts(shares, by_group=True))
    assert sorted(range(3, 6), key=result.__getitem__) == order
    assert result[2] == max(result), "whose group is not named has none"


jobs_of_some = st.lists(
    st.tuples(st.integers(0, 2 * DAY), st.integers(1, 4), st.integers(1, 4), st.integers(1, DAY)),
    min_size=1,
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(drawn=jobs_of_some)
def test_equal_shares_equal_no_shares(drawn: list[tuple[int, int, int, int]]) -> None:
    jobs = [
        job(number, at, user, processors=wide, limit=limit)
        for number, (at, user, wide, limit) in enumerate(
            sorted(drawn, key=lambda arrival: arrival[0])
        )
    ]
    assert starts(jobs, ShareAccounts(dict.fromkeys(range(1, 5), 7))) == starts(jobs, None)


@pytest.mark.parametrize(
    "shares", [{1: 9_999_999_999}, {1: 2_147_483_646, 2: 2_147_483_646, 3: 2_147_483_646}]
)
@pytest.mark.parametrize("by_group", [False, True])
def test_shares_that_no_slurm_takes_are_refused_before_anything_runs(
    shares: dict[int, int], by_group: bool
) -> None:
    with pytest.raises(InvalidInput, match="Slurm takes no such shares") as error:
        ShareAccounts(shares, by_group).check()
    assert (error.value.field, error.value.remedy) == ("shares", "divide all of them by the same")
