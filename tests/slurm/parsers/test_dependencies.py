"""Dependencies of a job in slurmctld's output, and the states of the jobs it depends on."""

from __future__ import annotations

from typing import Any

import pytest

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.scheduling.explain.dependencies import JobStates
from fairbank.scheduling.pending_job import PendingJob
from fairbank.slurm.parsers.job_lines import EndedJob, read_ended_jobs
from fairbank.slurm.parsers.jobs import SlurmJob, read_dependencies
from fairbank.slurm.queue_snapshot.dependencies import open_dependencies
from tests.slurm.queue_snapshot.test_snapshot import NOW, job, running

LINE = (
    "JobId={number} {array}JobName=x UserId=bob(60602) GroupId=users(100) MCS_label=N/A Priority=5"
    " Nice=0 Account=wg_bio QOS=normal JobState={state} Reason=None Dependency=(null) "
)


def dependency(kind: str, number: int | None = None, **more: Any) -> Dependency:
    return Dependency(kind=kind, job=number, **more)


# --- parsing ---


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("afterok:31(unfulfilled)", [dependency("afterok", 31)]),
        ("afterok:31(failed)", [dependency("afterok", 31, state=DependencyState.NEVER)]),
        ("afterok:31(fulfilled)", [dependency("afterok", 31, state=DependencyState.YES)]),
        ("after:31+10(unfulfilled)", [dependency("after", 31, minutes=10)]),
        ("afterany:15_*(unfulfilled)", [dependency("afterany", 15, all_tasks=True)]),
        ("afternotok:15_0(unfulfilled)", [dependency("afternotok", 15, task=0)]),
        ("after:15_*+5(unfulfilled)", [dependency("after", 15, all_tasks=True, minutes=5)]),
        ("singleton(unfulfilled)", [dependency("singleton")]),
        ("singleton", [dependency("singleton")]),
        (
            "afterburstbuffer:3(unfulfilled),expand:4(failed)",
            [
                dependency("afterburstbuffer", 3),
                dependency("expand", 4, state=DependencyState.NEVER),
            ],
        ),
        (
            "aftercorr:15_*(unfulfilled),singleton(unfulfilled)",
            [dependency("aftercorr", 15, all_tasks=True), dependency("singleton")],
        ),
        (
            "afterok:1:2_3,7",
            [dependency("afterok", 1), dependency("afterok", 2, task=3), dependency("afterany", 7)],
        ),
        ("afterlunch:1(unfulfilled)", [dependency("afterlunch", 1)]),
    ],
)
def test_dependencies_are_read(text: str, items: list[Dependency]) -> None:
    assert read_dependencies(text) == Dependencies(text, tuple(items))


def test_one_of_several_is_enough() -> None:
    dependencies = read_dependencies("afterok:1(failed)?singleton(unfulfilled)")
    assert dependencies == Dependencies(
        dependencies.text,
        (dependency("afterok", 1, state=DependencyState.NEVER), dependency("singleton")),
        any_of=True,
    )
    assert (dependencies.is_met, dependencies.is_unmeetable) == (False, False)


@pytest.mark.parametrize(
    "text",
    [
        "afterok", "afterok:", "afterok:x", "afterok:1(perhaps)", "afterok:1(unfulfilled",
        "afterok:1,after:2?after:3", ",", "?", ":1",
        "after:1+", "afterok:1_", "afterok:12345678901", "AFTEROK:1", "singleton(",
        "afterok:\N{ARABIC-INDIC DIGIT ONE}", "{}:1",
    ],
)  # fmt: skip
def test_unreadable_dependency_keeps_its_text(text: str) -> None:
    dependencies = read_dependencies(text)
    assert dependencies == Dependencies(text)
    assert (dependencies.is_met, dependencies.is_unmeetable, dependencies.open) == (
        False,
        False,
        (),
    )


YES, NOT_YET, NEVER = (dependency("afterok", 1, state=met) for met in DependencyState)


@pytest.mark.parametrize(
    ("items", "any_of", "met", "never"),
    [
        ((), False, True, False),
        ((YES, YES), False, True, False),
        ((YES, NOT_YET), False, False, False),
        ((YES, NEVER), False, False, True),
        ((NOT_YET, NEVER), False, False, True),
        ((YES, NEVER), True, True, False),
        ((NOT_YET, NEVER), True, False, False),
        ((NEVER, NEVER), True, False, True),
    ],
)
def test_dependencies_are_met_or_unmeetable(
    items: tuple[Dependency, ...], any_of: bool, met: bool, never: bool
) -> None:
    dependencies = Dependencies("some" if items else "", items, any_of)
    assert (dependencies.is_met, dependencies.is_unmeetable) == (met, never)


def test_ended_jobs_are_found() -> None:
    lines = [
        LINE.format(number=1, array="", state="COMPLETED"),
        LINE.format(number=2, array="", state="RUNNING"),
        LINE.format(
            number=3, array="ArrayJobId=3 ArrayTaskId=5-9%2 ArrayTaskThrottle=2 ", state="CANCELLED"
        ),
        LINE.format(number=4, array="ArrayJobId=3 ArrayTaskId=1 ", state="FAILED"),
        LINE.format(number=5, array="", state="TIMEOUT"),
        "JobId=1 nonsense",
    ]
    assert read_ended_jobs("\n".join(lines), {1, 2, 3}) == (
        EndedJob(1, None, None, "COMPLETED"),
        EndedJob(3, 3, None, "CANCELLED"),
        EndedJob(4, 3, 1, "FAILED"),
    )
    assert read_ended_jobs("\n".join(lines), set()) == ()


# --- states of the other jobs ---


def open_dependency(
    depends: Dependency,
    *others: SlurmJob,
    ended: tuple[EndedJob, ...] = (),
    task: int = -1,
    **own: Any,
) -> tuple[Dependency, JobStates]:
    """Return the dependency of job 50, and the states of the jobs it depends on."""
    me = job(50, dependencies=Dependencies("some", (depends,)), **own)
    opened = open_dependencies(
        PendingJob(number=50, task=task), {other.job_id: other for other in (me, *others)}, ended
    )
    return opened.on.items[0], opened.seen[0]


R7, W8 = running(7, "n1"), job(8, reason="Priority")
ARRAY = (
    running(20, "n1", array=20, task=0),
    running(21, "n2", array=20, task=1, ends=NOW + 900),
    job(22, array=20, tasks=(2, 3, 4)),
)


def test_dependency_on_one_job() -> None:
    assert open_dependency(dependency("afterok", 7), R7, W8)[1] == JobStates(
        running=("7",), began=NOW - 60, ends=NOW + 600
    )
    assert open_dependency(dependency("afterok", 8), R7, W8)[1] == JobStates(
        waiting=("8",), reason="Priority"
    )
    assert open_dependency(dependency("afterok", 9), R7, W8)[1] == JobStates()
    over = (EndedJob(9, None, None, "FAILED"), EndedJob(10, None, None, "COMPLETED"))
    assert open_dependency(dependency("afterok", 9), R7, ended=over)[1] == JobStates(
        ended=("FAILED",)
    )


def test_job_without_limit_has_no_end() -> None:
    assert open_dependency(dependency("afterok", 7), running(7, "n1", ends=None))[1].ends is None


def test_dependency_on_an_array_or_a_task() -> None:
    array_states = JobStates(
        running=("20_0", "20_1"),
        began=NOW - 60,
        ends=NOW + 900,
        waiting=("20_2", "20_3", "20_4"),
        reason="None",
        ended=("FAILED",),
    )
    over = (EndedJob(30, 20, 5, "FAILED"), EndedJob(31, 19, 5, "COMPLETED"))
    assert (
        open_dependency(dependency("afterok", 20, all_tasks=True), *ARRAY, ended=over)[1]
        == array_states
    )
    assert open_dependency(dependency("afterok", 20, task=1), *ARRAY)[1].running == ("20_1",)
    assert open_dependency(dependency("afterok", 20, task=3), *ARRAY)[1].waiting == ("20_3",)
    assert open_dependency(dependency("afterok", 20, task=5), *ARRAY, ended=over)[1] == JobStates(
        ended=("FAILED",)
    )


def test_aftercorr_uses_the_task_of_the_same_number() -> None:
    corr = dependency("aftercorr", 20, all_tasks=True)
    depends, states = open_dependency(corr, *ARRAY, task=3, array=50, tasks=(3, 9))
    assert (depends, states.waiting) == (dependency("aftercorr", 20, task=3), ("20_3",))
    depends, states = open_dependency(corr, *ARRAY, task=9, array=50, tasks=(3, 9))
    assert (depends, len(states.waiting)) == (corr, 3)
    assert open_dependency(corr, task=3, ended=(EndedJob(30, 20, 3, "FAILED"),))[0] == dependency(
        "aftercorr", 20, task=3
    )
    assert open_dependency(corr, *ARRAY)[0] == corr


def test_singleton_waits_for_earlier_jobs_of_the_same_name() -> None:
    others = (
        running(60, "n1", name="mine"),
        job(40, name="mine", reason="Resources"),
        job(61, name="mine"),
        job(41, name="mine", user="bob"),
        job(42, name="other"),
    )
    states = open_dependency(
        dependency("singleton"), *others, name="mine", ended=(EndedJob(1, None, None, "FAILED"),)
    )[1]
    assert states == JobStates(
        running=("60",), began=NOW - 60, ends=NOW + 600, waiting=("40",), reason="Resources"
    )
