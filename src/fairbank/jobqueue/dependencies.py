"""Dependencies of pending jobs while other jobs start and end (slurm-rules.md, "Dependencies").

A dependency that can never be met stays so, even if the other job is requeued and then completes.
One that is met stays met. A job that is not known any more counts as if it met every dependency.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from fairbank.cluster.dependency import Dependencies, Dependency, DependencyState
from fairbank.core.errors import Conflict, NotFound
from fairbank.core.submission.dependencies import DependencyExpression, RequestedDependency
from fairbank.core.time import MINUTE

DEPENDENCY, NEVER_SATISFIED = "Dependency", "DependencyNeverSatisfied"
"""Slurm's reasons of a job that waits for others, and of one that waits for ever."""

YES, NOT_YET, NEVER = DependencyState.YES, DependencyState.NOT_YET, DependencyState.NEVER


class Progress(Enum):
    """Progress of a job, as far as dependencies tell it apart."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETING = "completing"
    """Ended, while processes and epilogs are left on some of its nodes."""
    COMPLETED = "completed"
    FAILED = "failed"
    """Ended in another way, or cancelled before it started."""
    SPECIAL_EXIT = "special exit"
    """Pending and held, because the exit code of its last run is in RequeueExitHold."""


_WAITING = frozenset({Progress.PENDING, Progress.SPECIAL_EXIT})
_OPEN = _WAITING | {Progress.RUNNING, Progress.COMPLETING}


class DependencyJob(NamedTuple):
    """Job on which others may depend, or that depends on others. Times are in seconds.

    `array` and `task` are those of a task that has its own job id. `tasks` are those of an array
    that have not started, with one record. `started` is the start of its last run, or the end of a
    job that never started.
    """

    number: int
    user: str
    name: str
    progress: Progress
    started: int | None = None
    array: int | None = None
    task: int | None = None
    tasks: tuple[int, ...] = ()

    def has_task(self, task: int) -> bool:
        return task == self.task or task in self.tasks


class JobIndex:
    """Known jobs by the numbers and names by which a dependency finds them.

    Invariant: `_jobs` has each job by its number; `_by_id` also by its array, and `_by_name` by
    user and name, each as numbers in order of their first addition.
    """

    def __init__(self, jobs: Iterable[DependencyJob] = ()) -> None:
        self._jobs: dict[int, DependencyJob] = {}
        self._by_id: defaultdict[int, dict[int, None]] = defaultdict(dict)
        self._by_name: defaultdict[tuple[str, str], dict[int, None]] = defaultdict(dict)
        for job in jobs:
            self.put(job)

    def put(self, job: DependencyJob) -> None:
        """Add a job, or replace the one with its number."""
        self.remove(job.number)
        self._jobs[job.number] = job
        for number in {job.number, job.array or job.number}:
            self._by_id[number][job.number] = None
        self._by_name[job.user, job.name][job.number] = None

    def remove(self, number: int) -> None:
        """Remove a job that may not be known."""
        job = self._jobs.pop(number, None)
        if job is None:
            return
        for key in {number, job.array or number}:
            del self._by_id[key][number]
            if not self._by_id[key]:
                del self._by_id[key]
        same_name = self._by_name[job.user, job.name]
        del same_name[number]
        if not same_name:
            del self._by_name[job.user, job.name]

    def with_number(self, number: int) -> DependencyJob | None:
        return self._jobs.get(number)

    def with_id(self, number: int) -> list[DependencyJob]:
        """Return the job with this number, or the tasks of the array with it."""
        return [self._jobs[other] for other in self._by_id.get(number, ())]

    def with_name(self, user: str, name: str) -> list[DependencyJob]:
        return [self._jobs[number] for number in self._by_name.get((user, name), ())]


def accept_dependencies(
    wanted: DependencyExpression,
    own: DependencyJob,
    known: JobIndex,
    depends_on: Callable[[int], Iterable[int]],
) -> Dependencies:
    """Return the dependencies of a job as it is submitted or updated, each of them once.

    Args:
        wanted: the expression.
        own: the job itself.
        known: all other jobs.
        depends_on: returns the numbers of the jobs on which a job depends.

    Raises:
        NotFound: afterok or afternotok names a job that is not known.
        Conflict: the job would depend on itself, or on a job that depends on it.
    """
    for item in wanted.items:
        if item.job is None:
            continue
        if not _concerned(item, own, known) and item.kind in ("afterok", "afternotok"):
            raise NotFound(
                f"there is no job {item.job}", field="dependency", remedy="squeue lists the jobs"
            )
        if own.number in _reachable(item.job, depends_on):
            raise Conflict(
                f"job {own.number} would wait for itself",
                field="dependency",
                remedy="name jobs that do not depend on it",
            )
    items = tuple(Dependency(*item) for item in dict.fromkeys(wanted.items))
    return Dependencies(write_dependencies(items, any_of=wanted.any_of), items, wanted.any_of)


def _reachable(first: int, depends_on: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the numbers of a job and of all that it depends on, directly or not."""
    reached: set[int] = set()
    waiting = [first]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += depends_on(number)
    return reached


def advance(on: Dependencies, own: DependencyJob, known: JobIndex, now: int) -> Dependencies:
    """Return the dependencies of a pending job with their present states.

    Args:
        on: dependencies with the states that they had.
        own: the job itself.
        known: all jobs that have not been forgotten, also those that have ended.
        now: time in seconds since 1970.
    """
    items = tuple(
        item if item.state is not NOT_YET else item._replace(state=_state(item, own, known, now))
        for item in on.items
    )
    if items == on.items:
        return on
    return Dependencies(write_dependencies(items, any_of=on.any_of), items, on.any_of)


def next_test(on: Dependencies, known: JobIndex, now: int) -> int | None:
    """Return the next time at which a dependency is met although nothing happens; None: never."""
    times = [
        (job.started or 0) + item.minutes * MINUTE
        for item in on.open
        if item.minutes and item.job is not None
        for job in known.with_id(item.job)
    ]
    return min((time for time in times if time > now), default=None)


def wait_reason(on: Dependencies) -> str | None:
    """Return Slurm's reason of a job with these dependencies; None if they are met."""
    if on.is_unmeetable:
        return NEVER_SATISFIED
    return None if on.is_met else DEPENDENCY


def _state(item: Dependency, own: DependencyJob, known: JobIndex, now: int) -> DependencyState:
    if item.job is None:
        return NOT_YET if _earlier_jobs(own, known) else YES
    jobs = _concerned(item, own, known)
    if not jobs:
        return YES
    if item.kind == "after":
        is_due = all(_has_been_started(job, item.minutes * MINUTE, now) for job in jobs)
        return YES if is_due else NOT_YET
    if item.kind == "expand":
        return _state_of_expansion(jobs)
    if item.kind == "afternotok" and any(job.progress is Progress.SPECIAL_EXIT for job in jobs):
        return YES
    if any(job.progress in _OPEN for job in jobs):
        return NOT_YET
    if item.kind in ("afterany", "afterburstbuffer"):
        return YES
    have_completed = all(job.progress is Progress.COMPLETED for job in jobs)
    return YES if have_completed is (item.kind != "afternotok") else NEVER


def _state_of_expansion(jobs: Iterable[DependencyJob]) -> DependencyState:
    """Return the state of `expand`: the other job runs."""
    states = {job.progress for job in jobs}
    if Progress.RUNNING in states:
        return YES
    return NOT_YET if states & _OPEN else NEVER


def _has_been_started(job: DependencyJob, seconds: int, now: int) -> bool:
    """Return True if the job started, or was cancelled before it started, so long ago."""
    if job.progress in _WAITING:
        return False
    if job.started is None:  # its nodes are being prepared
        return not seconds
    return job.started + seconds <= now


def _concerned(
    item: Dependency | RequestedDependency, own: DependencyJob, known: JobIndex
) -> list[DependencyJob]:
    """Return the known jobs that a dependency is about."""
    jobs = known.with_id(item.job or 0)
    task = item.task
    if task is None and item.kind == "aftercorr" and own.task is not None:
        # Against a job that is no array, or that lacks the task, it is like afterok.
        task = own.task if any(job.has_task(own.task) for job in jobs) else None
    return jobs if task is None else [job for job in jobs if job.has_task(task)]


def _earlier_jobs(own: DependencyJob, known: JobIndex) -> list[DependencyJob]:
    """Return the jobs of the same user and name that run or were submitted before."""
    return [
        job
        for job in known.with_name(own.user, own.name)
        if job.number != own.number
        and (
            job.progress is Progress.RUNNING
            or (job.progress in _WAITING and job.number < own.number)
        )
    ]


def write_dependencies(items: Iterable[Dependency], *, any_of: bool) -> str:
    """Return the dependencies that are not met in Slurm's notation: `afterok:31_4(unfulfilled)`.

    Args:
        items: all dependencies.
        any_of: one of them is enough.
    """
    return ("?" if any_of else ",").join(
        f"{item.kind}{_target(item)}({item.state.value})" for item in items if item.state is not YES
    )


def _target(item: Dependency) -> str:
    if item.job is None:
        return ""
    task = "_*" if item.all_tasks else "" if item.task is None else f"_{item.task}"
    return f":{item.job}{task}{f'+{item.minutes}' if item.minutes else ''}"
