"""Arrays: one record for the tasks that have not started."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.arrays import parse_array
from fairbank.jobqueue.arrays import (
    JobSelection,
    parse_selection,
    queued_tasks,
    record_name,
    record_number,
    task_ranges,
)
from fairbank.scheduling.pending_job import PendingJob


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("7", JobSelection(7)),
        ("7_0", JobSelection(7, (0,))),
        ("7_[1-3,8]", JobSelection(7, (1, 2, 3, 8))),
        ("7_[4-9%2]", JobSelection(7, (4, 5, 6, 7, 8, 9))),
    ],
)
def test_selection_names_a_job_or_tasks(text: str, selection: JobSelection) -> None:
    assert parse_selection(text) == selection


@pytest.mark.parametrize("text", ["", "7_", "7_[", "7_[]", "7_[3-1]", "seven", "7.0", "7_1_2"])
def test_selection_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a job"):
        parse_selection(text)


@pytest.mark.parametrize(
    ("tasks", "throttle", "name"),
    [
        ((4, 5, 6, 7, 8, 9), 2, "7_[4-9%2]"),
        ((1,), None, "7_[1]"),
        ((1, 2, 5), None, "7_[1-2,5]"),
        ((0, 4, 8, 12), None, "7_[0-12:4]"),
    ],
)
def test_record_is_named_after_its_tasks(
    tasks: tuple[int, ...], throttle: int | None, name: str
) -> None:
    assert record_name(7, tasks, throttle) == name


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_have_the_numbers_and_are_read_back(numbers: set[int]) -> None:
    tasks = sorted(numbers)
    assert [number for part in task_ranges(tasks) for number in part] == tasks
    text = record_name(7, tasks).removeprefix("7_[").removesuffix("]")
    assert parse_array(text, field="array").numbers == tuple(tasks)


def test_record_is_queued_as_one_job_for_each_task() -> None:
    record = PendingJob(number=7, array=7, priority=5)
    jobs = list(queued_tasks(record, (4, 6)))
    assert [(job.task, job.name, job.priority) for job in jobs] == [(4, "7_4", 5), (6, "7_6", 5)]
    assert {record_number(job.number) for job in jobs} == {7}
    assert len({job.number for job in jobs}) == 2
