"""Real traces, where this machine has them: read completely, with the counts that their collection
states.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest

from fairbank.simulator.traces.header import Header
from fairbank.simulator.traces.job_line import SwfJob
from fairbank.simulator.traces.swf import ByteStream, read, write
from tests.support.traces import JOBS, KTH, LUBLIN, METACENTRUM, UBCCR


class Whole(NamedTuple):
    header: Header
    jobs: list[SwfJob]


Reader = Callable[[str], Whole]


def whole(stream: ByteStream) -> Whole:
    header, jobs = read(stream)
    return Whole(header, list(jobs))


@pytest.fixture
def trace(recorded: Callable[[str], Path]) -> Reader:
    def found(name: str) -> Whole:
        with gzip.open(recorded(name)) as stream:
            return whole(stream)

    return found


@pytest.mark.parametrize("name", JOBS)
def test_real_trace_is_read_whole(trace: Reader, name: str) -> None:
    header, jobs = trace(name)
    assert len(jobs) == header.max_records == JOBS[name]


@pytest.mark.parametrize("name", JOBS)
def test_real_trace_survives_being_written(trace: Reader, name: str) -> None:
    result = trace(name)
    assert whole(BytesIO("".join(write(*result)).encode())) == result


def test_kth_has_the_documented_faults(trace: Reader) -> None:
    header, jobs = trace(KTH)
    assert (header.unix_start_time, header.max_procs) == (843_480_031, 100)
    assert sum(job.run_time == 0 for job in jobs) == 8
    assert sum(job.run_time > (job.time_limit or job.run_time) for job in jobs) == 475
    assert sum(job.allocated_processors < 1 for job in jobs) == 1
    assert len({job.user for job in jobs}) == 214


def test_metacentrum_has_two_jobs_without_an_end(trace: Reader) -> None:
    header, jobs = trace(METACENTRUM)
    assert [job.number for job in jobs if job.end_time is None] == [4186, 4200]
    assert len(header.queues) == 11
    assert len({job.user for job in jobs}) == 75


def test_lublin_has_no_time_limits(trace: Reader) -> None:
    _, jobs = trace(LUBLIN)
    assert {job.time_limit for job in jobs} == {None}
    assert {job.requested_processors for job in jobs} == {-1}
    assert max(job.processors or 0 for job in jobs) <= 256


def test_ubccr_runs_over_its_limits(trace: Reader) -> None:
    header, jobs = trace(UBCCR)
    assert sum(job.run_time > (job.time_limit or job.run_time) for job in jobs) == 153
    assert header.partitions == {1: "general-compute", 2: "debug"}
