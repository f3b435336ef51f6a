"""Workload edits change only the named part."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.simulator.traces.fast_reader import FastLine
from fairbank.simulator.traces.workload_edits import (
    MAX_SHIFT,
    MAX_STRETCH,
    EditCounts,
    Resized,
    WorkloadEdits,
    edit_workload,
    perturb_workload,
)

USERS = {7: "ada", 8: "bob"}


def job(
    number: int,
    submit: int = 0,
    run: int = 100,
    processors: int = 4,
    limit: int = 200,
    user: int = 7,
    group: int = 3,
) -> FastLine:
    return (number, submit, run, processors, processors, limit, 1, user, group, 1)


def through(
    jobs: list[FastLine], changes: WorkloadEdits, met: EditCounts | None = None
) -> list[FastLine]:
    return list(
        edit_workload(
            jobs, changes, lambda number: USERS.get(number, str(number)), str, met or EditCounts()
        )
    )


JOBS = [job(1), job(2, user=8), job(3, group=4), job(4, user=9)]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (WorkloadEdits(), [1, 2, 3, 4]),
        (WorkloadEdits(users=frozenset({"ada"})), [2, 4]),
        (WorkloadEdits(users=frozenset({"ada", "9"})), [2]),
        (WorkloadEdits(groups=frozenset({"4"})), [1, 2, 4]),
        (WorkloadEdits(users=frozenset({"bob"}), groups=frozenset({"4"})), [1, 4]),
        (WorkloadEdits(users=frozenset({"nobody"})), [1, 2, 3, 4]),
    ],
)
def test_removed_users_have_no_jobs(changes: WorkloadEdits, left: list[int]) -> None:
    assert through(JOBS, changes) == [line for line in JOBS if line[0] in left]


def test_edits_count_the_changed_jobs() -> None:
    met = EditCounts()
    through(
        [*JOBS, job(3)],
        WorkloadEdits(frozenset({"ada", "eve"}), frozenset({"3"}), {4: Resized(1), 9: Resized(1)}),
        met,
    )
    assert (met.users, met.groups, met.jobs) == ({"ada": 3}, {"3": 2}, {})


@pytest.mark.parametrize(
    ("wanted", "became"),
    [
        (Resized(processors=16), job(2, processors=16)),
        (Resized(limit=150), job(2, limit=150)),
        (Resized(limit=60), job(2, run=60, limit=60)),
        (Resized(1, 7_200), job(2, processors=1, limit=7_200)),
    ],
)
def test_job_of_another_size_or_limit(wanted: Resized, became: FastLine) -> None:
    """On other processors a job runs as long; with a limit shorter than its run it ends at the
    limit.
    """
    result = through([job(1), job(2), job(3)], WorkloadEdits(jobs={2: wanted}))
    assert result[0] == job(1)
    assert result[1][4:] == became[4:]
    assert result[1][2] == became[2]
    assert result[2] == job(3)


@pytest.mark.parametrize(
    ("run", "limit", "percent", "became"),
    [
        (100, 200, 75, 150),
        (100, 200, 10, 100),
        (100, 200, 300, 600),
        (300, 200, 50, 200),
        (100, -1, 50, -1),
        (-1, 200, 50, 100),
    ],
)
def test_limits_of_all_but_none_shorter_than_the_run(
    run: int, limit: int, percent: int, became: int
) -> None:
    (result,) = through([job(1, run=run, limit=limit)], WorkloadEdits(limits_percent=percent))
    assert result == job(1, run=run, limit=became)


lines = st.lists(
    st.tuples(st.integers(0, 90), st.integers(-1, 10**6), st.integers(-1, 10**6)), max_size=60
)


@given(lines, st.text(max_size=8))
def test_perturbed_jobs_differ_slightly(drawn: list[tuple[int, int, int]], seed: str) -> None:
    at, jobs = 0, []
    for number, (gap, run, limit) in enumerate(drawn, start=1):
        at += gap
        jobs.append(job(number, at, run, 1 + number % 5, limit))
    rows = list(perturb_workload(jobs, seed))
    assert rows == list(perturb_workload(jobs, seed))
    assert [line[1] for line in rows] == sorted(line[1] for line in rows)
    after: Mapping[int, FastLine] = {line[0]: line for line in rows}
    assert len(rows) == len(after) == len(jobs)
    for before in jobs:
        now = after[before[0]]
        assert now[3:] == before[3:]
        assert abs(now[1] - before[1]) <= MAX_SHIFT
        assert abs(now[2] - before[2]) <= MAX_STRETCH * before[2] + 0.5
        if 0 < before[2] <= before[5]:
            assert 0 < now[2] <= before[5]


def test_other_seeds_perturb_differently_and_never_before_the_trace() -> None:
    jobs = [job(number, number, run=10_000, limit=20_000) for number in range(200)]
    one, other = list(perturb_workload(jobs, "1/1")), list(perturb_workload(jobs, "1/2"))
    assert one != other
    assert min(line[1] for line in one) >= 0
    runs = [line[2] for line in one]
    assert min(runs) < 9_950
    assert max(runs) > 10_050
