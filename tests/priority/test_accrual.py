"""Accrual of age, as passes of the scheduler over a queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.priority.age_by_job import Job, Limit, Queue, accrue_jobs


def test_age_starts_when_limit_allows() -> None:
    """Two slots for four jobs, with times shifted by 10, because 0 means no time."""
    queue = Queue(qoses={"normal": Limit(per_user=2)})
    queue.comes("J1", "J2", "J3", "J4", at=10)
    queue.passes(10)
    assert [job.accrued_at for job in queue.jobs.values()] == [10, 10, 0, 0]
    queue.passes(500)
    queue.starts("J1")
    queue.passes(1_010)
    assert queue.jobs["J3"].accrued_at == 1_010
    assert queue.ages(1_610) == {"J2": 1_600, "J3": 600, "J4": 0}


def test_job_without_limit_ages_since_eligible() -> None:
    queue = Queue()
    queue.comes("J1", at=10)
    queue.comes("array", at=20, tasks=50)
    queue.passes(100)
    assert queue.ages(100) == {"J1": 90, "array": 80}


def test_held_and_dependent_jobs_do_not_age() -> None:
    queue = Queue()
    queue.comes("held", at=10)
    queue.jobs["held"] = replace(queue.jobs["held"], ready=False)
    queue.comes("tomorrow", at=5_000)
    queue.passes(100)
    assert queue.ages(100) == {"held": 0, "tomorrow": 0}


@pytest.mark.parametrize(
    ("limits", "ageing"),
    [
        (Limit(group=3), ["a1", "a2", "a3"]),
        (Limit(per_account=3), ["a1", "a2", "a3", "b1", "b2", "b3"]),
        (Limit(per_user=3), ["a1", "a2", "a3", "e1", "e2", "e3", "b1", "b2", "b3"]),
        (Limit(group=5, per_account=3, per_user=2), ["a1", "a2", "e1", "b1", "b2"]),
    ],
    ids=["QOS", "account", "user", "the strictest of them"],
)
def test_accrue_limits_of_qos(limits: Limit, ageing: list[str]) -> None:
    queue = Queue(qoses={"normal": limits}, associations={"root": Limit(group=0)})
    queue.comes("a1", "a2", "a3", "a4", at=10)
    queue.comes("e1", "e2", "e3", "e4", at=10, user="eve")
    queue.comes("b1", "b2", "b3", "b4", at=10, user="bob", account="chemistry")
    queue.passes(10)
    assert [name for name, job in queue.jobs.items() if job.accrued_at] == ageing


@pytest.mark.parametrize(
    ("associations", "ageing"),
    [
        ({"ada@physics": Limit(each=1)}, ["a1", "e1", "e2"]),
        ({"ada@physics": Limit(group=1, each=0)}, ["a1", "e1", "e2"]),
        ({"physics": Limit(group=1)}, ["a1"]),
        ({"physics": Limit(each=1)}, ["a1", "a2", "e1", "e2"]),
        ({"root": Limit(group=3)}, ["a1", "a2", "e1"]),
        ({"eve@physics": Limit(group=1), "physics": Limit(group=1)}, ["a1", "e1"]),
    ],
    ids=[
        "a user's own",
        "its group limit first",
        "the account's group",
        "not handed up",
        "root's",
        "the first on the way up",
    ],
)
def test_accrue_limits_of_associations(associations: dict[str, Limit], ageing: list[str]) -> None:
    queue = Queue(associations=associations)
    queue.comes("a1", "a2", at=10)
    queue.comes("e1", "e2", at=10, user="eve", qos=None)
    queue.passes(10)
    assert [name for name, job in queue.jobs.items() if job.accrued_at] == ageing


def test_lowered_limit_keeps_jobs_that_already_age() -> None:
    queue = Queue(qoses={"normal": Limit(group=1)})
    queue.comes("J1", "J2", "J3", at=10)
    for name in ("J1", "J2"):
        queue.jobs[name] = replace(queue.jobs[name], accrued_at=10)
    queue.passes(100)
    assert queue.ages(100) == {"J1": 90, "J2": 90, "J3": 0}
    queue.starts("J1")
    queue.passes(200)
    assert queue.ages(200) == {"J2": 190, "J3": 0}


def test_array_tasks_begin_to_age_up_to_the_limit() -> None:
    queue = Queue(qoses={"normal": Limit(per_user=3)})
    queue.comes("array", at=10, tasks=10)
    queue.passes(50)
    assert queue.jobs["array split"].tasks == 3
    assert (queue.jobs["array"].tasks, queue.jobs["array"].accrued_at) == (7, 0)


def test_jobs_that_already_age_are_unchanged() -> None:
    queue = Queue()
    queue.comes("J1", at=10)
    queue.passes(100)
    queue.passes(200)
    assert queue.jobs["J1"].accrued_at == 10
    assert accrue_jobs([], {}, {}, now=100) == []


jobs = st.builds(
    Job,
    user=st.sampled_from(["ada", "eve"]),
    account=st.sampled_from(["physics", "chemistry"]),
    submitted_at=st.integers(1, 9),
    eligible_at=st.integers(0, 9),
    qos=st.sampled_from([None, "normal", "long"]),
    ready=st.booleans(),
    accrued_at=st.sampled_from([0, 0, 3]),
    tasks=st.integers(1, 3),
)


def test_slurm_22_05_checks_only_first_limit_of_qos() -> None:
    jobs = [Job(user="ada", account="physics", submitted_at=5, eligible_at=5) for _ in range(3)]
    limits = {"normal": Limit(per_account=2, per_user=1)}
    assert accrue_jobs(jobs, {}, limits, now=9) == [(9, 1), (0, 0), (0, 0)]
    assert accrue_jobs(jobs, {}, limits, now=9, first_of_qos=True) == [(9, 1), (9, 1), (0, 0)]


@given(st.lists(jobs, max_size=14), st.integers(0, 6), st.integers(1, 9))
def test_jobs_that_age_never_exceed_the_limit(queue: list[Job], group: int, now: int) -> None:
    accrued = accrue_jobs(queue, {}, {"normal": Limit(group=group)}, now=now)
    before = sum(job.tasks for job in queue if job.accrued_at and job.qos == "normal")
    begun = sum(
        tasks for job, (_, tasks) in zip(queue, accrued, strict=True) if job.qos == "normal"
    )
    assert begun == 0 or before + begun <= group
