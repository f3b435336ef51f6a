"""File patterns, as sbatch(1) describes them."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.file_patterns import ARRAY_OUTPUT, OUTPUT, expand_pattern, job_symbols

JOB: dict[str, int | str] = {
    "j": 128,
    "J": "128.0",
    "s": 0,
    "t": 2,
    "n": 1,
    "N": "lx3",
    "u": "alice",
    "x": "fluid",
}
TASK = JOB | {"A": 120, "a": 47}


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (OUTPUT, "slurm-128.out"),
        (ARRAY_OUTPUT, "slurm-120_47.out"),
        ("job%J.out", "job128.0.out"),
        ("job%4j.out", "job0128.out"),
        ("job%j-%2t.out", "job128-02.out"),
        ("%12j", "0000000128"),
        ("%5x/%5N", "fluid/lx3"),
        ("%u/%x.%b", "alice/fluid.7"),
        ("100%%.%n.%s", "100%.1.0"),
        ("%q %", "%q %"),
        (r"a\%j", "a%j"),
    ],
)
def test_symbols_are_replaced_as_in_the_manual(pattern: str, path: str) -> None:
    assert expand_pattern(pattern, TASK, field="--output") == path


def test_symbol_without_a_value_stays() -> None:
    assert expand_pattern(ARRAY_OUTPUT, JOB, field="--output") == ARRAY_OUTPUT


def test_job_that_is_no_task_has_the_numbers_of_slurm() -> None:
    job = job_symbols(128, "alice", "fluid", array=None, task=None)
    assert expand_pattern(ARRAY_OUTPUT, job, field="--output") == "slurm-128_4294967294.out"
    waiting = job_symbols(128, "alice", "fluid", array=120, task=None)
    assert expand_pattern(ARRAY_OUTPUT, waiting, field="--output") == "slurm-120_%a.out"


def test_name_with_a_slash_leads_to_no_other_directory() -> None:
    with pytest.raises(InvalidInput) as error:
        expand_pattern("%x.out", JOB | {"x": "../fluid"}, field="--output")
    assert error.value.field == "--output"
    assert expand_pattern("%j.out", JOB | {"x": "../fluid"}, field="--output") == "128.out"
