"""Priorities in sprio's format, byte for byte as a real Slurm 22.05 printed them, and of a known
vector.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.report.slurm.sprio import (
    FIELDS,
    PriorityRow,
    WeightRow,
    default_format,
    lines,
    parse_format,
    select_rows,
    sort_rows,
    weight_lines,
)
from tests.support.fairshare_recordings import (
    printed,
    priorities_then,
    recorded_commands,
    weights_then,
)

RULES = ("fair-tree", "classic")
NOTHING = ("no-jobs", "by-nice")  # sprio prints a message: no jobs, or it cannot sort by S
FINER = ("classic", "by-fair-share")  # sorted by digits that sprio does not print
QUESTIONS = [
    (rule, name)
    for rule in RULES
    for name in recorded_commands(rule, "sprio")
    if name not in NOTHING and (rule, name) != FINER
]


@pytest.mark.parametrize(("rule", "name"), QUESTIONS)
def test_output_equals_that_of_slurm(rule: str, name: str) -> None:
    _, words = recorded_commands(rule, "sprio")[name]
    weights = weights_then(rule)
    fields = dict(pairwise(words))
    expected = fields.get("-o")
    format_ = (
        parse_format(expected)
        if expected
        else default_format(weights, long="-l" in words, norm="-n" in words, users="-u" in words)
    )
    if "-w" in words:
        output = weight_lines(weights, format_)
    else:
        rows = select_rows(
            priorities_then(rule),
            jobs=[int(job) for job in fields["-j"].split(",")] if "-j" in words else None,
            users=fields["-u"].split(",") if "-u" in words else None,
            partitions=fields["-p"].split(",") if "-p" in words else None,
        )
        output = lines(
            sort_rows(rows, weights, fields.get("-S", "i")),
            weights,
            format_,
            header="-h" not in words,
        )
    assert "".join(f"{line}\n" for line in output) == printed(rule, f"sprio-{name}")


# vector V12: a job of 8 CPUs and 32 GiB that has waited for half of PriorityMaxAge
WEIGHTS = WeightRow(
    1000, 0, 10000, 500, 1000, 2000, {"cpu": 1000.0, "mem": 2000.0}, "cpu=1000,mem=2000"
)
JOB = PriorityRow(
    job=1,
    partition_name="cpu",
    age=500.0,
    fair_share=4084.7886331027494,
    job_size=37.50000000000001,
    partition=500.0,
    qos=1000.0,
    tres={"cpu": 50.0, "mem": 100.0},
    site=50,
    nice=100,
)


def test_columns_are_rounded_and_their_sum_is_truncated() -> None:
    assert JOB.priority == pytest.approx(6222.288633102749, abs=1e-9)
    (line,) = lines([JOB], WEIGHTS, parse_format("%A|%F|%J|%P|%Q|%S|%N|%T|%Y"), header=False)
    assert line == "500|4085|38|500|1000|50|100|cpu=50,mem=100|6222"
    shown = line.split("|")
    assert sum(map(int, shown[:5])) + 50 - 100 + 150 == 6223


def test_normalised_factors() -> None:
    (line,) = lines([JOB], WEIGHTS, parse_format("%a|%b|%f|%j|%p|%q|%t|%16y"), header=False)
    assert (
        line == "0.5000000|0.0000000|0.4084789|0.0750000|0.5000000|0.5000000|cpu=0.05,mem=0.05|"
        "0.00000144873947"
    )


def test_half_is_rounded_to_the_even_number() -> None:
    (line,) = lines(
        [PriorityRow(1, "p", age=0.5, job_size=1.5, qos=2.5)],
        WEIGHTS,
        parse_format("%A %J %Q"),
        header=False,
    )
    assert line == "0 2 2"


@pytest.mark.parametrize(
    ("age", "nice", "shown"),
    [(0.0, 0, "1"), (50.0, 100, "1"), (5.0, -2147483645, "2147483650"), (1.5, 0, "1")],
)
def test_priority_of_a_job_that_is_not_held_is_at_least_1(
    age: float, nice: int, shown: str
) -> None:
    assert lines(
        [PriorityRow(1, "p", age=age, nice=nice)], WEIGHTS, parse_format("%Y"), header=False
    ) == [shown]


def test_long_format_of_newer_slurm_has_account_and_qos() -> None:
    row = PriorityRow(7, "cpu", "ayla", "chem_qmc_long", "a_long_quality", nice=5)
    head, line = lines([row], WEIGHTS, default_format(WEIGHTS, long=True, named=True))
    assert (
        head
        == "          JOBID PARTITION     USER  ACCOUNT   PRIORITY       SITE        AGE      ASSOC"
        "  FAIRSHARE    JOBSIZE  PARTITION    QOSNAME        QOS        NICE                "
        " TRES"
    )
    assert (
        line
        == "              7 cpu           ayla chem_qmc          1          0          0          0"
        "          0          0          0 a_long_qua          0           5                "
        "     "
    )
    head, _ = lines([row], WEIGHTS, default_format(WEIGHTS, long=True, norm=True, named=True))
    assert (
        head
        == "          JOBID PARTITION     USER  ACCOUNT PRIORITY   AGE        ASSOC      FAIRSHARE "
        " JOBSIZE    PARTITION  QOSNAME    QOS        TRES                "
    )
    assert lines([row], WEIGHTS, default_format(WEIGHTS, users=True))[0].startswith(
        "          JOBID PARTITION     USER   PRIORITY"
    )


def test_only_weighted_factors_are_shown_by_default() -> None:
    head, _ = lines([JOB], WeightRow(age=1), default_format(WeightRow(age=1)))
    assert head == "          JOBID PARTITION   PRIORITY       SITE        AGE"


def test_every_field_sorts_in_both_directions() -> None:
    rows = [
        JOB,
        JOB._replace(job=2, age=1.0, partition_name="a", tres={}),
        JOB._replace(job=3, nice=-5, user="z"),
    ]
    for letter in FIELDS:
        up = sort_rows(rows, WEIGHTS, letter)
        keys = [FIELDS[letter].key(row, WEIGHTS) for row in up]
        assert keys == sorted(keys)
        assert [
            FIELDS[letter].key(row, WEIGHTS) for row in sort_rows(rows, WEIGHTS, f"-{letter}")
        ] == keys[::-1]
        assert sort_rows(rows, WEIGHTS, f"+{letter}") == up


@pytest.mark.parametrize("wrong", ["%z", "%.10", "no column", "", "%5x %i", "%i %9"])
def test_invalid_format_is_reported(wrong: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_format(wrong)
    assert (error.value.field, bool(error.value.remedy)) == ("--format", True)


@pytest.mark.parametrize("wrong", ["z", "i,", "", "--i", "ii", "-"])
def test_invalid_sort_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput) as error:
        sort_rows([JOB], WEIGHTS, wrong)
    assert error.value.field == "--sort"
