"""Skimming a trace gives what reading all of it gives, and refuses what it refuses, in the columns that a schedule depends on."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.simulator.header import Header
from fairbank.simulator.job_line import SwfJob
from fairbank.simulator.skim import Skimmed, skim
from fairbank.simulator.swf import read, write
from fairbank.values.trouble import Malformed

unknown_or = st.one_of(st.just(-1), st.integers(0, 100), st.integers(0, 2**33))
jobs = st.lists(
    st.builds(
        lambda number, submit, rest: SwfJob(number, submit, *rest),
        st.integers(0, 2**33),
        st.integers(0, 2**33),
        st.lists(unknown_or.filter(lambda n: n < 2**20), min_size=16, max_size=16),
    ),
    max_size=8,
).map(lambda found: sorted(found, key=lambda job: job.submit_time))


def needed(job: SwfJob) -> Skimmed:
    sizes = (job.allocated_processors, job.requested_processors, job.requested_time)
    return (job.number, job.submit_time, job.run_time, *sizes, job.status, job.user, job.group, job.partition)


def skimmed(text: str) -> list[Skimmed]:
    return list(skim(BytesIO(text.encode())).jobs)


@given(jobs)
def test_skimming_is_reading(found: list[SwfJob]) -> None:
    text = "".join(write(Header(max_procs=8), found))
    assert skimmed(text) == [needed(job) for job in read(BytesIO(text.encode())).jobs]


PLAIN = "1 0 -1 10 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -1"


@pytest.mark.parametrize(
    "lines",
    [
        "1 0 -1 10.4 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -1",
        "1 0 -5 -5 4 -1 -1 4 20 -1 1 7 7 -1 1 1 -1 -5",
        f"{PLAIN}\n; a remark among jobs\n\n{PLAIN}",
    ],
)
def test_what_is_not_plain_is_read_as_ever(lines: str) -> None:
    assert skimmed(lines) == [needed(job) for job in read(BytesIO(lines.encode())).jobs]


@pytest.mark.parametrize(
    "lines",
    [
        f"{PLAIN} 5",
        PLAIN.removesuffix(" -1"),
        PLAIN.replace("10", "1-0"),
        PLAIN.replace("10", "ten"),
        f"-{PLAIN}",
        PLAIN.replace(" 10 ", f" {2**60} "),
        PLAIN.replace("1 0 ", "1 5 ") + "\n" + PLAIN,
    ],
)
def test_what_reading_refuses_is_refused_in_the_same_words(lines: str) -> None:
    with pytest.raises(Malformed) as reading:
        list(read(BytesIO(lines.encode())).jobs)
    with pytest.raises(Malformed) as skimming:
        skimmed(lines)
    assert str(skimming.value) == str(reading.value)
