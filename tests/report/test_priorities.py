"""Explanation of a priority: bars, the position in the queue, and the reason why another job is
ahead.
"""

from __future__ import annotations

from fairbank.report.priorities import (
    as_data,
    best_rows,
    explain_priority,
    partition_queues,
    parts,
    undated_note,
    unnamed_note,
)
from fairbank.report.slurm.sprio import PriorityRow, WeightRow

WEIGHTS = WeightRow(
    age=10_000,
    fair_share=100_000,
    job_size=1000,
    qos=2000,
    tres={"cpu": 1000.0},
    tres_text="cpu=1000",
)
MINE = PriorityRow(
    812345,
    "idle",
    "ayla",
    "chem_qmc",
    age=1200.0,
    fair_share=41_200.4,
    job_size=31.0,
    tres={"cpu": 250.0, "mem": 0.0},
    nice=100,
)
THEIRS = PriorityRow(
    812300,
    "idle",
    "jorge",
    "bio",
    age=1100.0,
    fair_share=42_000.0,
    job_size=31.0,
    qos=500.0,
    site=-20,
)
GIVEN = PriorityRow(812350, "idle", "root", direct=99_999)
ELSEWHERE = PriorityRow(812000, "gpu", "ayla", fair_share=99_000.0)
QUEUE = partition_queues([ELSEWHERE, MINE, THEIRS, GIVEN])["idle"]


def test_priority_bars_and_jobs_ahead() -> None:
    assert explain_priority(MINE, QUEUE, WEIGHTS) == [
        "Job 812345 (ayla, chem_qmc, partition idle)",
        "priority 42,581, 3rd of 3 that wait in idle",
        "  age                 1,200   0.120 x 10,000       #",
        "  fair share         41,200   0.412 x 100,000      ########################",
        "  job size               31   0.031 x 1,000",
        "  QOS                     0   0.000 x 2,000",
        "  cpu                   250   0.250 x 1,000",
        "  nice                 -100",
        (
            "Just ahead: job 812300 of jorge with 43,611: fair share +800, QOS +500, nice +100,"
            " site factor -20, age -100, cpu -250."
        ),
    ]


def test_given_priority_has_no_factors() -> None:
    assert explain_priority(GIVEN, QUEUE, WEIGHTS)[1:] == [
        "priority 99,999, 1st of 3 that wait in idle",
        "  An administrator gave it this priority; no factor counts.",
        "No job is ahead of it there.",
    ]
    assert (
        explain_priority(THEIRS, QUEUE, WEIGHTS)[-1]
        == "Just ahead: job 812350 of root with 99,999, which an administrator gave it."
    )
    assert parts(GIVEN, WEIGHTS) == []


def test_job_with_a_lower_given_priority_is_not_ahead() -> None:
    low = GIVEN._replace(direct=7)
    assert (
        explain_priority(low, [MINE, low], WEIGHTS)[-1]
        == "Just ahead: job 812345 of ayla with 42,581."
    )


def test_lower_number_wins_between_equal_priorities() -> None:
    first, second = MINE, MINE._replace(job=812346)
    assert partition_queues([second, ELSEWHERE, first]) == {
        "gpu": [ELSEWHERE],
        "idle": [first, second],
    }
    assert explain_priority(second, [first, second], WEIGHTS)[-1].endswith(
        "with 42,581: the same, and the lower number goes first."
    )


def test_earlier_submission_wins_between_equal_priorities() -> None:
    """A requeued job keeps its number, and is behind the jobs that were submitted while it ran."""
    requeued, later = MINE._replace(submitted=2_000), MINE._replace(job=812346, submitted=1_000)
    assert partition_queues([requeued, later])["idle"] == [later, requeued]
    assert explain_priority(requeued, [later, requeued], WEIGHTS)[-1].endswith(
        "with 42,581: the same, and it was submitted earlier."
    )


def test_job_with_several_qos_is_not_behind_itself() -> None:
    dear = MINE._replace(qos=2000.0, qos_name="dear")
    rows = [MINE, dear, THEIRS, ELSEWHERE, MINE._replace(partition_name="gpu")]
    assert partition_queues(rows)["idle"] == [dear, THEIRS], "each once, where its best QOS puts it"
    assert [row.qos_name for row in best_rows(rows) if row.job == MINE.job] == ["dear", ""], (
        "once in each partition"
    )
    explanation = explain_priority(dear, partition_queues(rows)["idle"], WEIGHTS)
    assert (explanation[1], explanation[-1]) == (
        "priority 44,581, 1st of 2 that wait in idle",
        "No job is ahead of it there.",
    )


def test_running_job_has_no_queue_neighbours() -> None:
    runs = THEIRS._replace(runs=True)
    queues = partition_queues([runs, MINE, GIVEN])
    assert queues == {"idle": [GIVEN, MINE]}
    explanation = explain_priority(runs, queues["idle"], WEIGHTS)
    assert (explanation[1], explanation[-1]) == (
        "priority 43,611, and it runs",
        "  site factor           -20",
    )
    assert undated_note([runs]) == unnamed_note([runs._replace(account="")]) == [], (
        "squeue was asked for those that wait"
    )


def test_minimum_priority_is_reported() -> None:
    row = MINE._replace(nice=2**31 - 3)
    assert "  All together is less than 1, the least that a job has." in explain_priority(
        row, [row], WEIGHTS
    )


def test_positions_are_ordinal_numbers() -> None:
    rows = [PriorityRow(number, "p", age=float(200 - number)) for number in range(1, 124)]
    output = {
        rows[at].job: explain_priority(rows[at], rows, WEIGHTS)[1].split(", ")[1]
        for at in (0, 1, 2, 3, 10, 11, 12, 20, 100, 110, 121, 122)
    }
    assert [
        place.split(" of ")[0] for place in output.values()
    ] == "1st 2nd 3rd 4th 11th 12th 13th 21st 101st 111th 122nd 123rd".split()


def test_json_has_each_factor_of_a_priority_unless_it_was_given() -> None:
    mine, given = as_data(MINE), as_data(GIVEN)
    assert mine["priority"] == 42581
    one_by_one = {
        "age": 1200.0,
        "association": 0.0,
        "fair_share": 41_200.4,
        "job_size": 31.0,
        "partition": 0.0,
        "qos": 0.0,
    }
    assert mine["factors"] == {**one_by_one, "tres": {"cpu": 250.0, "mem": 0.0}}
    assert (given["given"], given["factors"], given["priority"]) == (True, None, 99_999)
