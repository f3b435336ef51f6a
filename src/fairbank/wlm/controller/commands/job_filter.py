"""Selection of jobs: by their numbers as commands write them, and by what they have. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from fairbank.jobqueue.arrays import JobSelection, parse_selection
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.jobs import EndedRun, WlmJob, WlmRun
from fairbank.wlm.core.requests.known_names import unknown
from fairbank.wlm.core.requests.rights import check_owner
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import RowFilter


def selected_jobs(state: CoreState, wanted: RowFilter, first: int = 0) -> Iterator[WlmJob]:
    """Yield the jobs that fit a filter, by number, from `first` on.

    Raises InvalidInput for a text that is no job.
    """
    selections = [parse_selection(text) for text in wanted.jobs]
    known: Iterable[int] = state.jobs
    if selections:  # testing each of 10,000 jobs would keep all others waiting
        named = (state.index.with_id(selection.number) for selection in selections)
        known = {job.number for jobs in named for job in jobs}
    for number in sorted(number for number in known if number >= first):
        job = state.jobs[number]
        run = None if job.state.base == "PENDING" else job.run
        states = (job.state.base, *job.state.flags)
        if (not selections or is_among(job, selections)) and fits(job, run, states, wanted):
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


def fits(
    job: WlmJob | EndedRun, run: WlmRun | None, states: Collection[str], wanted: RowFilter
) -> bool:
    """Return True if a job fits all lists of a filter but its numbers.

    `run` is None for a job without nodes.
    """
    request, allocation = job.request, None if run is None else run.allocation
    partitions = request.partitions if allocation is None else (allocation.partition,)
    return (
        has(wanted.users, request.user, str(job.submission.uid))
        and has(wanted.accounts, request.account)
        and has(wanted.partitions, *partitions)
        and has(wanted.states, *states)
        and has(wanted.names, job.submission.name)
        and has(wanted.qos, request.qos or DEFAULT_QOS)
        and has(wanted.reservations, request.reservation or "")
        and has(wanted.nodes, *(() if allocation is None else allocation.nodes))
        and has(wanted.licenses, *request.licenses)
    )


def has(wanted: Sequence[str], *own: str) -> bool:
    """Return True if a list of a filter is empty or has one of these names."""
    return not wanted or any(name in wanted for name in own)


def is_empty(wanted: RowFilter) -> bool:
    """Return True if a filter selects every job."""
    lists = (
        wanted.jobs, wanted.users, wanted.accounts, wanted.partitions, wanted.states, wanted.names,
        wanted.qos, wanted.reservations, wanted.nodes, wanted.licenses,
    )  # fmt: skip
    return not any(lists)


def selection_of(job: WlmJob) -> JobSelection:
    """Return the selection of just this job, or of the tasks that have not started."""
    request = job.request
    if request.array is None:
        return JobSelection(job.number)
    return JobSelection(request.array, job.tasks or (request.task,))
