"""One execution of a job, and the parts of its name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.cluster.job import Run, check_run
from fairbank.core.errors import InvalidInput
from fairbank.core.ids import ID_MAX, JOB_ID_MAX


def test_run_is_never_the_job_id_alone() -> None:
    before, after_wrap, requeued = (
        Run("darwin", 7, 1_000),
        Run("darwin", 7, 9_000),
        Run("darwin", 7, 1_000, restart=1),
    )
    assert len({before, after_wrap, requeued, Run("caviness", 7, 1_000)}) == 4
    assert str(requeued) == "darwin/7@1000.1"


@pytest.mark.parametrize("run", [Run("darwin", 1, 0), Run("darwin", 2**32 - 1, 2**53 - 1, 65_535)])
def test_runs_in_range(run: Run) -> None:
    assert check_run(run) is run


@pytest.mark.parametrize(
    ("run", "field"),
    [
        (Run("", 1, 0), "cluster"),
        (Run("dar\nwin", 1, 0), "cluster"),
        (Run("darwin", 0, 0), "job_id"),
        (Run("darwin", 2**32, 0), "job_id"),
        (Run("darwin", 1, -1), "submitted"),
        (Run("darwin", 1, 2**53), "submitted"),
        (Run("darwin", 1, 0, -1), "restart"),
        (Run("darwin", 1, 0, 65_536), "restart"),
    ],
)
def test_part_out_of_range_is_named(run: Run, field: str) -> None:
    with pytest.raises(InvalidInput) as no:
        check_run(run)
    assert no.value.field == field
    assert re.fullmatch(
        r"a whole number from [01] to (65535|4294967295|9007199254740991)|1 to 255 bytes .*",
        no.value.remedy or "",
    )


runs = st.builds(
    Run,
    st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z"),
    st.integers(1, JOB_ID_MAX),
    st.integers(0, ID_MAX),
    st.integers(0, 65_535),
)


@given(runs)
def test_run_is_read_from_its_own_text(run: Run) -> None:
    assert Run.parse(str(run)) == run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "darwin",
        "darwin/7",
        "darwin/7@1000",
        "/7@1000.0",
        "darwin/x@1000.0",
        "darwin/0@1000.0",
        "dar/win/7@1.0",
        "darwin/7@1.0\n",
        "d/\u0667@1.0",
    ],
)
def test_another_text_is_no_run(text: str) -> None:
    with pytest.raises(InvalidInput) as no:
        Run.parse(text)
    assert re.fullmatch(
        r"a whole number from 1 to 4294967295|cluster/job@submitted\.restart, such as"
        r" darwin/7@1795000000\.0",
        no.value.remedy or "",
    )
