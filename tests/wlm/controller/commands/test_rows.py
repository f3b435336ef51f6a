"""Rows of jobs: those of waiting jobs are kept, and never shown after a change."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from fairbank.wlm.controller.commands.job_lines import FIELDS, FIELDS_OF_RECORD, ShownJob
from fairbank.wlm.controller.commands.rows import COLUMNS_MAX, JobRows, KeptRow
from fairbank.wlm.core import events as ev
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import RowFilter, RowsRequest
from tests.wlm.core.world import ALICE, OPERATOR, START, World, named

COLUMNS = ("job_id", "state", "reason", "priority")
NO_STATE = cast("CoreState", None)


def lines(rows: JobRows, world: World, *columns: str, **matching: Any) -> list[Any]:
    wanted = RowFilter(**matching)
    request = RowsRequest(version=1, of="jobs", columns=columns or COLUMNS, filter=wanted)
    return [line for _, line in rows.lines(world.core.state, world.now, request)]


def cells(line: Any, *columns: str) -> Any:
    row = line.row if isinstance(line, KeptRow) else line.cells(columns or COLUMNS)
    return msgspec.json.decode(msgspec.json.encode(row))


def waiting(world: World) -> list[int]:
    """Submit jobs that wait for various reasons, behind one that runs."""
    parent = world.run_one(cpus=4)
    numbers = [
        world.submit(comment="a comment"),
        world.submit(held=True, array="1-5%2"),
        world.submit(dependency=f"afterok:{parent}"),
        world.submit(cpus=4),
    ]
    world.request(ev.HoldJob(named(numbers[0])), OPERATOR)
    world.settle()
    return numbers


def test_field_of_the_record_needs_neither_the_state_nor_the_time() -> None:
    world = World()
    requeued = world.run_one(cpus=4)
    numbers = [requeued, *waiting(world)]
    world.request(ev.RequeueJob(named(requeued), held=True), OPERATOR)
    for number in numbers:
        job = world.job(number)
        shown = ShownJob(world.core.state, job, world.now)
        assert shown.waits
        alone = ShownJob(NO_STATE, job, world.now._replace(wall=START.wall + 10**9))
        for name in FIELDS_OF_RECORD:
            assert FIELDS[name](alone) == FIELDS[name](shown), name


def test_row_of_an_unchanged_waiting_job_is_made_once() -> None:
    world, rows = World(nodes=1), JobRows()
    waiting(world)
    first, second = lines(rows, world), lines(rows, world)
    assert [cells(line) for line in first] == [cells(line) for line in second]
    kept = [line for line in first if isinstance(line, KeptRow)]
    assert len(kept) == 4
    assert [line for line in second if isinstance(line, KeptRow)] == kept
    assert all(one is other for one, other in zip(kept, second[1:], strict=True))


def test_row_of_a_changed_job_is_made_again() -> None:
    world, rows = World(nodes=1), JobRows()
    number = waiting(world)[0]
    (before,) = lines(rows, world, jobs=(str(number),))
    world.request(ev.ReleaseJob(named(number)), OPERATOR)
    (after,) = lines(rows, world, jobs=(str(number),))
    assert cells(before)[:3] == [number, "PENDING", "JobHeldAdmin"]
    assert cells(after)[2:] == ["None", world.job(number).request.priority]
    world.request(ev.CancelJob(named(number)), ALICE)
    (ended,) = lines(rows, world, jobs=(str(number),))
    assert cells(ended)[:2] == [number, "CANCELLED"]


def test_row_of_a_job_shows_its_begin_time_until_then() -> None:
    world, rows = World(), JobRows()
    number = world.submit(eligible=START.wall + 60)
    assert cells(lines(rows, world)[0])[:3] == [number, "PENDING", "BeginTime"]
    world.now = world.now._replace(wall=START.wall + 60)
    assert cells(lines(rows, world)[0])[2] == "None"
    world.now = START  # the clock is set back
    assert cells(lines(rows, world)[0])[2] == "BeginTime"


@pytest.mark.parametrize("column", ["waited", "started", "limit", "requested_tres"])
def test_row_with_what_changes_beside_the_record_is_not_kept(column: str) -> None:
    world, rows = World(nodes=1), JobRows()
    waiting(world)
    assert not any(isinstance(line, KeptRow) for line in lines(rows, world, "job_id", column))


def test_task_of_an_array_has_a_row_of_its_own() -> None:
    world, rows = World(nodes=1), JobRows()
    waiting(world)
    lines(rows, world, "task", "tasks_left")
    tasks = [cells(line, "task", "tasks_left") for line in lines(rows, world, tasks=True)]
    assert [task for task in tasks if task[0]] == [[number, ""] for number in range(1, 6)]


def test_kept_rows_are_at_most_as_many_as_the_jobs_for_few_lists_of_columns() -> None:
    world, rows = World(nodes=1), JobRows()
    numbers = waiting(world)
    first = lines(rows, world)[1:]
    for number in numbers[1:]:
        del world.core.state.jobs[number]
    (_, again) = lines(rows, world)
    assert isinstance(again, KeptRow)
    assert again is not first[0]
    for column in sorted(FIELDS_OF_RECORD)[:COLUMNS_MAX]:
        lines(rows, world, column)
    assert lines(rows, world)[1] is not again
