"""Synthetic month: the same every time, possible on its machine, and like that of a centre."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.simulator.traces.job_line import Status, SwfJob
from fairbank.simulator.traces.swf import read, write
from fairbank.simulator.traces.synthetic import HOUR, LIMITS, SitePartition, SyntheticSite, month

pools = st.builds(
    SitePartition, st.sampled_from(["cpu", "gpu", "fat"]), st.integers(32, 400), st.integers(1, 8)
)
centres = st.builds(
    SyntheticSite,
    pools=st.lists(pools, min_size=1, max_size=3, unique_by=lambda pool: pool.name).map(tuple),
    projects=st.integers(1, 9),
    users=st.integers(9, 30),
    jobs=st.integers(0, 300),
    days=st.integers(1, 40),
    node_failures=st.integers(0, 20),
)
seeds = st.integers(0, 2**64)


def written(centre: SyntheticSite, seed: int) -> bytes:
    return "".join(write(*month(centre, seed))).encode()


def test_month_of_the_demo() -> None:
    header, stream = month(SyntheticSite(), seed=1)
    jobs = list(stream)
    assert [job.number for job in jobs] == list(range(1, 4_001))
    assert {job.group for job in jobs} == set(range(1, 9))
    assert {job.user for job in jobs} == set(range(1, 41))
    assert header.partitions == {1: "cpu", 2: "gpu"}
    assert len(header.node_failures) == 12
    assert header.max_procs == 960


@given(centres, seeds)
def test_same_seed_gives_the_same_bytes(centre: SyntheticSite, seed: int) -> None:
    assert written(centre, seed) == written(centre, seed)


def test_another_process_gives_the_same_bytes() -> None:
    program = (
        "import hashlib; from fairbank.simulator.traces.swf import write;"
        "from fairbank.simulator.traces.synthetic import month;"
        "from fairbank.simulator.traces.synthetic import SyntheticSite;"
        "print(hashlib.sha256(''.join(write(*month(SyntheticSite(), 7))).encode()).hexdigest())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "4711"}
    there = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert there == hashlib.sha256(written(SyntheticSite(), 7)).hexdigest()


def test_another_seed_gives_another_month() -> None:
    assert written(SyntheticSite(), 1) != written(SyntheticSite(), 2)


@given(centres, seeds)
def test_month_is_a_trace(centre: SyntheticSite, seed: int) -> None:
    header, jobs = month(centre, seed)
    again = read(BytesIO(written(centre, seed)))
    assert again.header == header
    assert list(again.jobs) == list(jobs)


@given(centres, seeds)
def test_no_partition_ever_runs_more_than_it_has(centre: SyntheticSite, seed: int) -> None:
    jobs = list(month(centre, seed).jobs)
    for partition, pool in enumerate(centre.pools, start=1):
        assert most_at_once(job for job in jobs if job.partition == partition) <= pool.processors


@given(centres, seeds)
def test_fcfs_keeps_the_order(centre: SyntheticSite, seed: int) -> None:
    jobs = [job for job in month(centre, seed).jobs if job.end_time is not None]
    for partition in range(1, len(centre.pools) + 1):
        starts = [job.start_time for job in jobs if job.partition == partition]
        assert starts == sorted(starts)


def test_job_waits_only_while_the_machine_is_too_full_for_it() -> None:
    centre = SyntheticSite(pools=(SitePartition("cpu", 256),), jobs=1_000)
    jobs = [job for job in month(centre, 3).jobs if job.end_time is not None]
    waited = [
        job
        for ahead, job in pairwise(jobs)
        if job.wait_time > 0 and job.start_time > ahead.start_time
    ]
    assert len(waited) > 10
    for job in waited:
        a_second_earlier = sum(
            other.allocated_processors
            for other in jobs
            if other.start_time < job.start_time <= (other.end_time or 0)
        )
        assert a_second_earlier + job.allocated_processors > 256


def most_at_once(jobs: Iterable[SwfJob]) -> int:
    """Return the most processors in use at any moment. A job that ends at a moment no longer uses
    any.
    """
    steps = [
        step
        for job in jobs
        if job.end_time is not None
        for step in (
            (job.start_time, 1, job.allocated_processors),
            (job.end_time, 0, -job.allocated_processors),
        )
    ]
    used = most = 0
    for _, _, change in sorted(steps):
        used += change
        most = max(most, used)
    return most


def test_every_end_happens() -> None:
    header, stream = month(SyntheticSite(), seed=1)
    jobs = list(stream)
    ends = Counter(Status(job.status) for job in jobs)
    assert ends[Status.COMPLETED] > 3_000
    assert ends[Status.FAILED] > 100
    assert ends[Status.CANCELLED] > 20
    assert all(
        job.end_time is None and job.allocated_processors == -1
        for job in jobs
        if job.status == Status.CANCELLED
    )
    over = [job for job in jobs if job.run_time > job.requested_time]
    assert len(over) > 10
    assert all(
        job.status == Status.FAILED and job.run_time <= job.requested_time + 30 for job in over
    )
    assert {job.status for job in jobs if job.number in header.node_failures} == {Status.FAILED}


def test_shapes_are_those_of_the_literature() -> None:
    jobs = list(
        month(SyntheticSite(jobs=20_000, pools=(SitePartition("cpu", 4_096),)), seed=1).jobs
    )
    ran = [job for job in jobs if job.end_time is not None]
    activity = Counter(job.group for job in jobs)
    assert activity[1] > 3 * activity[8]
    assert {job.requested_time for job in jobs} == set(LIMITS)
    assert sum(job.requested_time for job in ran) > 2 * sum(job.run_time for job in ran)
    powers = sum(job.requested_processors.bit_count() == 1 for job in jobs)
    assert powers > 0.7 * len(jobs)
    noon = sum(9 <= job.submit_time // HOUR % 24 < 18 for job in jobs)
    assert noon > 0.6 * len(jobs)
    weekend = sum(
        job.submit_time // HOUR // 24 % 7 >= 5 for job in jobs
    )  # the default month begins on a Monday
    assert 0.05 < weekend / len(jobs) < 0.2


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"pools": ()}, "pools"),
        ({"pools": (SitePartition("tiny", 3),)}, "pools"),
        ({"pools": (SitePartition("gpu", 64, unit=0),)}, "pools"),
        (
            {
                "pools": (
                    SitePartition("cpu", 64),
                    SitePartition("gpu", 64),
                    SitePartition("cpu", 32),
                )
            },
            "pools",
        ),
        ({"pools": (SitePartition("", 64),)}, "pools"),
        ({"pools": (SitePartition(" cpu", 64),)}, "pools"),
        ({"projects": 0}, "projects"),
        ({"projects": 9, "users": 8}, "users"),
        ({"jobs": -1}, "jobs"),
        ({"days": 0}, "days"),
        ({"node_failures": -1}, "node_failures"),
        ({"starts": -1}, "starts"),
    ],
)
def test_centre_that_cannot_be_is_refused(wrong: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        SyntheticSite(**wrong)  # type: ignore[arg-type]
    assert error.value.field == field
    assert re.fullmatch(
        r"give a number from [01] to [\d,]+|give at least one.*|give each a name .*|give seconds"
        r" since 1970, before 2106",
        error.value.remedy or "",
    )
