"""Selection of jobs: by their numbers as commands write them, and by what they have. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from fairbank.jobqueue.arrays import JobSelection, parse_selection
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.job_states import JobState
from fairbank.wlm.core.jobs import EndedRun, WlmJob, WlmRun
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.requests.rights import check_owner
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import RowFilter

JobTest = Callable[[WlmJob | EndedRun, WlmRun | None, Collection[str]], bool]
"""Test of a job with its run, None without nodes, and its states."""
JobNames = Callable[[WlmJob | EndedRun, WlmRun | None, Collection[str]], Iterable[str]]
"""Names that a job has for one list of a filter."""

_STATES: Mapping[JobState, Sequence[str]] = {
    state: (state.base, *state.flags) for state in JobState
}


def selected_jobs(state: CoreState, wanted: RowFilter, first: int = 0) -> Iterator[WlmJob]:
    """Yield the jobs that fit a filter, by number, from `first` on.

    Raises InvalidInput for a text that is no job.
    """
    selections = [parse_selection(text) for text in wanted.jobs]
    known: Iterable[int] = state.jobs
    if selections:  # testing each of 10,000 jobs would keep all others waiting
        named = (state.index.with_id(selection.number) for selection in selections)
        known = {job.number for jobs in named for job in jobs}
    fits, numbers = test_of(wanted), sorted(known)
    for number in numbers[bisect_left(numbers, first) :]:
        job = state.jobs[number]
        states = _STATES[job.state]
        run = None if states[0] == "PENDING" else job.run
        if (not selections or is_among(job, selections)) and fits(job, run, states):
            yield job


def own_jobs(state: CoreState, text: str, caller: Caller) -> list[WlmJob]:
    """Return the jobs that a text names. Raises NotFound, and Forbidden for those of others."""
    jobs = [*selected_jobs(state, RowFilter(jobs=(text,)))]
    if not jobs:
        raise unknown("job", text)
    for job in jobs:
        check_owner(state.settings, caller, job)
    return jobs


def is_among(job: WlmJob | EndedRun, selections: Iterable[JobSelection]) -> bool:
    """Return True if one of the selections names the job, or a task of it."""
    request, tasks = job.request, job.tasks or (job.request.task,)
    return any(
        number in (request.number, request.array)
        and (wanted is None or not set(tasks).isdisjoint(wanted))
        for number, wanted in selections
    )


def test_of(wanted: RowFilter) -> JobTest:
    """Return the test whether a job fits all lists of a filter but its numbers."""
    # Most lists are empty: testing all of them would take half of the time of a row.
    lists = [
        (frozenset(names), own)
        for field, own in _NAMES.items()
        for names in (getattr(wanted, field),)
        if names
    ]

    def fits(job: WlmJob | EndedRun, run: WlmRun | None, states: Collection[str]) -> bool:
        for names, own in lists:  # noqa: SIM110 - a generator takes twice as long
            if names.isdisjoint(own(job, run, states)):
                return False
        return True

    return fits


_NAMES: Mapping[str, JobNames] = {
    "users": lambda job, run, states: (job.request.user, str(job.submission.uid)),
    "accounts": lambda job, run, states: (job.request.account,),
    "partitions": lambda job, run, states: (
        job.request.partitions if run is None else (run.allocation.partition,)
    ),
    "states": lambda job, run, states: states,
    "names": lambda job, run, states: (job.submission.name,),
    "qos": lambda job, run, states: (job.request.qos or DEFAULT_QOS,),
    "reservations": lambda job, run, states: (job.request.reservation or "",),
    "nodes": lambda job, run, states: () if run is None else run.allocation.nodes,
    "licenses": lambda job, run, states: job.request.licenses,
}
"""By the lists of a filter."""


def has(wanted: Sequence[str], *own: str) -> bool:
    """Return True if a list of a filter is empty or has one of these names."""
    return not wanted or any(name in wanted for name in own)


def is_empty(wanted: RowFilter) -> bool:
    """Return True if a filter selects every job."""
    return not any(getattr(wanted, field) for field in ("jobs", *_NAMES))


def selection_of(job: WlmJob) -> JobSelection:
    """Return the selection of just this job, or of the tasks that have not started."""
    request = job.request
    if request.array is None:
        return JobSelection(job.number)
    return JobSelection(request.array, job.tasks or (request.task,))
