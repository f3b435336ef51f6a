"""Dependencies as other jobs start and end: each kind, arrays, and what is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.dependency import Dependencies, DependencyState
from fairbank.core.errors import Conflict, FairbankError, NotFound
from fairbank.core.submission.dependencies import parse_dependencies
from fairbank.jobqueue.dependencies import (
    DependencyJob,
    JobIndex,
    Progress,
    accept_dependencies,
    advance,
    next_test,
    wait_reason,
)

NOW = 10_000
PENDING, RUNNING, COMPLETING = Progress.PENDING, Progress.RUNNING, Progress.COMPLETING
COMPLETED, FAILED, SPECIAL_EXIT = Progress.COMPLETED, Progress.FAILED, Progress.SPECIAL_EXIT
MET, OPEN, LOST = DependencyState.YES, DependencyState.NOT_YET, DependencyState.NEVER


def job(number: int, progress: Progress, **fields: Any) -> DependencyJob:
    return DependencyJob(number, "alice", "train", progress, **fields)


OWN = job(50, PENDING)


def array(*states: Progress, first: int = 0) -> list[DependencyJob]:
    """Return array 7, whose started tasks have the ids 8, 9, ...; its record if some wait."""
    tasks = tuple(first + at for at, state in enumerate(states) if state is PENDING)
    begun = [
        job(8 + at, state, array=7, task=first + at)
        for at, state in enumerate(states)
        if state is not PENDING
    ]
    return [*begun, *([job(7, PENDING, array=7, tasks=tasks)] if tasks else [])]


def dependencies(text: str) -> Dependencies:
    known = JobIndex([job(7, PENDING, array=7, tasks=tuple(range(10))), job(8, PENDING)])
    return accept_dependencies(
        parse_dependencies(text, field="dependency"), OWN, known, lambda _: ()
    )


def states(text: str, *jobs: DependencyJob, own: DependencyJob = OWN) -> list[DependencyState]:
    known = JobIndex([*jobs, own])
    return [item.state for item in advance(dependencies(text), own, known, NOW).items]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # pending, running, completing, completed, failed, held after its exit code
        ("after", [OPEN, MET, MET, MET, MET, OPEN]),
        ("afterany", [OPEN, OPEN, OPEN, MET, MET, OPEN]),
        ("afterok", [OPEN, OPEN, OPEN, MET, LOST, OPEN]),
        ("afternotok", [OPEN, OPEN, OPEN, LOST, MET, MET]),
        ("aftercorr", [OPEN, OPEN, OPEN, MET, LOST, OPEN]),
        ("afterburstbuffer", [OPEN, OPEN, OPEN, MET, MET, OPEN]),
        ("expand", [OPEN, MET, OPEN, LOST, LOST, OPEN]),
    ],
)
def test_dependency_follows_the_other_job(kind: str, expected: list[DependencyState]) -> None:
    order = (PENDING, RUNNING, COMPLETING, COMPLETED, FAILED, SPECIAL_EXIT)
    assert [states(f"{kind}:7", job(7, state))[0] for state in order] == expected


@pytest.mark.parametrize("kind", ["after", "afterany", "afterok", "afternotok", "aftercorr"])
def test_job_that_is_not_known_any_more_meets_every_dependency(kind: str) -> None:
    assert states(f"{kind}:7") == [MET]


@pytest.mark.parametrize(
    ("started", "state"), [(NOW - 601, MET), (NOW - 600, MET), (NOW - 599, OPEN)]
)
def test_after_with_minutes_waits_so_long(started: int, state: DependencyState) -> None:
    other = job(7, RUNNING, started=started)
    assert states("after:7+10", other) == [state]
    following = next_test(dependencies("after:7+10"), JobIndex([other]), NOW)
    assert following == (started + 600 if state is OPEN else None)


@pytest.mark.parametrize(("text", "state"), [("after:7", MET), ("after:7+10", OPEN)])
def test_minutes_of_after_do_not_count_before_the_script_begins(
    text: str, state: DependencyState
) -> None:
    assert states(text, job(7, RUNNING)) == [state]


@pytest.mark.parametrize(
    ("text", "tasks", "expected"),
    [
        ("afterok:7", (COMPLETED, COMPLETED), MET),
        ("afterok:7", (COMPLETED, PENDING), OPEN),
        ("afterok:7_*", (COMPLETED, FAILED), LOST),
        ("afterok:7_0", (COMPLETED, FAILED), MET),
        ("afterok:7_1", (COMPLETED, PENDING), OPEN),
        ("afternotok:7", (COMPLETED, FAILED), MET),
        ("afternotok:7", (FAILED, RUNNING), OPEN),
        ("afterok:7", (COMPLETED, COMPLETING), OPEN),
        ("afterany:7", (FAILED, PENDING), OPEN),
        ("after:7", (RUNNING, PENDING), OPEN),
    ],
)
def test_array_counts_as_all_of_its_tasks(
    text: str, tasks: tuple[Progress, ...], expected: DependencyState
) -> None:
    assert states(text, *array(*tasks)) == [expected]


@pytest.mark.parametrize(("task", "expected"), [(0, MET), (1, LOST), (2, OPEN), (9, OPEN)])
def test_aftercorr_waits_for_the_task_of_the_same_number(
    task: int, expected: DependencyState
) -> None:
    """Without such a task it waits for all of them."""
    own = job(60, PENDING, array=55, task=task)
    assert states("aftercorr:7", *array(COMPLETED, FAILED, PENDING), own=own) == [expected]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([job(7, PENDING)], OPEN),
        ([job(7, SPECIAL_EXIT)], OPEN),
        ([job(7, COMPLETING)], MET),
        ([job(7, COMPLETED)], MET),
        ([job(60, PENDING)], MET),
        ([job(60, RUNNING)], OPEN),
        ([job(7, RUNNING)._replace(user="bob")], MET),
        ([job(7, RUNNING)._replace(name="test")], MET),
    ],
)
def test_singleton_waits_for_earlier_jobs_of_its_name_and_user(
    others: list[DependencyJob], expected: DependencyState
) -> None:
    assert states("singleton", *others) == [expected]


def test_failure_is_remembered_when_the_other_job_is_requeued_and_completes() -> None:
    known = JobIndex([OWN, job(7, FAILED)])
    on = advance(dependencies("afterok:7"), OWN, known, NOW)
    known.put(job(7, COMPLETED))
    assert advance(on, OWN, known, NOW) is on
    assert wait_reason(on) == "DependencyNeverSatisfied"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("afterok:7,afterok:8", "DependencyNeverSatisfied"),
        ("afterok:7?afterok:8", None),
        ("afterany:7,afterok:8", None),
        ("afterok:7?afternotok:8", "DependencyNeverSatisfied"),
        ("afterany:7?afterany:9", None),
    ],
)
def test_all_dependencies_must_be_met_or_one_of_them(text: str, reason: str | None) -> None:
    """Job 7 failed and job 8 completed."""
    known = JobIndex([OWN, job(7, FAILED), job(8, COMPLETED)])
    assert wait_reason(advance(dependencies(text), OWN, known, NOW)) == reason


def test_text_leaves_out_what_is_met() -> None:
    known = JobIndex([OWN, job(7, COMPLETED), job(8, FAILED)])
    on = dependencies("afterok:7,afterok:8,after:7_2+5,singleton,afterok:7")
    assert on.text == (
        "afterok:7(unfulfilled),afterok:8(unfulfilled),after:7_2+5(unfulfilled)"
        ",singleton(unfulfilled)"
    )
    assert advance(on, OWN, known, NOW).text == "afterok:8(failed)"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("afterok:99", NotFound),
        ("afternotok:99", NotFound),
        ("afterok:50", Conflict),
        ("afterany:7", Conflict),
    ],
)
def test_unknown_and_circular_dependencies_are_refused(
    text: str, error: type[FairbankError]
) -> None:
    """Job 7 waits for job 8, and that for job 50."""
    known = JobIndex([OWN, job(7, PENDING), job(8, PENDING)])
    wanted = parse_dependencies(text, field="dependency")
    waits = {7: [8], 8: [50]}
    with pytest.raises(error):
        accept_dependencies(wanted, OWN, known, lambda number: waits.get(number, ()))


@pytest.mark.parametrize("text", ["after:99", "afterany:99", "aftercorr:99"])
def test_unknown_job_is_accepted_where_its_end_does_not_matter(text: str) -> None:
    on = accept_dependencies(
        parse_dependencies(text, field="dependency"), OWN, JobIndex(), lambda _: ()
    )
    assert advance(on, OWN, JobIndex(), NOW).is_met


def test_index_follows_a_job_that_changes_and_forgets_it() -> None:
    index = JobIndex(array(COMPLETED, PENDING))
    assert [other.number for other in index.with_id(7)] == [8, 7]
    index.put(job(7, RUNNING, array=7, task=1))
    assert {other.task for other in index.with_id(7)} == {0, 1}
    for number in (7, 8, 8):
        index.remove(number)
    assert index.with_id(7) == index.with_name("alice", "train") == []
