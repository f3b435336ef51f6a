"""Schedules as CSV for spreadsheets."""

from __future__ import annotations

import csv

from fairbank.report.simulations import LINES, SCHEDULE_HEADER, schedules_csv


def row(job: int, user: str = "ada") -> tuple[int | str, ...]:
    return (job, user, "bio", 10, 15, 20, 4, 5)


def test_each_policy_has_a_line_for_each_job_below_one_header() -> None:
    lines = "".join(
        schedules_csv([("easy", [row(1), row(2)]), ("fcfs", [row(1)]), ("none", [])])
    ).splitlines()
    assert lines[0].split(",") == list(SCHEDULE_HEADER)
    assert lines[1:] == [
        "easy,1,ada,bio,10,15,20,4,5",
        "easy,2,ada,bio,10,15,20,4,5",
        "fcfs,1,ada,bio,10,15,20,4,5",
    ]


def test_names_are_escaped_in_csv() -> None:
    lines = "".join(schedules_csv([("-1+2", [row(1, '@a,"b"')])])).splitlines()
    (_, read) = csv.reader(lines)
    assert read[:3] == ["'-1+2", "1", '\'@a,"b"']


def test_many_jobs_are_written_in_parts() -> None:
    portions = list(schedules_csv([("easy", (row(number) for number in range(2 * LINES + 1)))]))
    assert [portion.count("\n") for portion in portions] == [1, LINES, LINES, 1]
    assert [line.split(",")[1] for line in "".join(portions).splitlines()[1:]] == [
        str(number) for number in range(2 * LINES + 1)
    ]
