"""Rows of accounting: runs that have ended, and those of jobs that wait or run."""

from __future__ import annotations

import grp
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, Protocol

from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError
from fairbank.jobqueue.arrays import parse_selection
from fairbank.wlm.controller.commands.accounting_lines import Accounted, ShownRun, live_run
from fairbank.wlm.controller.commands.job_filter import SelectedFacts, fits, is_among, selected_jobs
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter
from fairbank.wlm.protocol.commands import PAGE, RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import Message, PollUsage, Registration, RunUsage, UsageReport

Keyed = tuple[Sequence[int], object]
"""Line with its key, which grows from line to line."""


class NodeRequests(Protocol):
    """Links to the nodes, and what they have registered last."""

    @property
    def registrations(self) -> Mapping[str, Registration]: ...

    async def ask(self, node: str, request: Message) -> Message: ...


class RowPage(NamedTuple):
    """Lines, and the cursor of the next page; None if there is none."""

    lines: Sequence[object]
    after: str | None


_USAGE = frozenset({"processor", "virtual", "resident", "total_cpu"})
"""Columns of accounting that nodes know."""


def page_of(lines: Iterable[Keyed], after: tuple[int, ...]) -> RowPage:
    """Return the page of lines after a key."""
    following = (item for item in lines if tuple(item[0]) > after)
    page = list(islice(following, PAGE + 1))
    last = ".".join(map(str, page[PAGE - 1][0])) if len(page) > PAGE else None
    return RowPage([line for _, line in page[:PAGE]], last)


_LIVE = 2**62
"""First part of the keys of jobs that wait or run, which come after all ended runs."""


async def accounting_page(
    runner: CoreRunner, nodes: NodeRequests, request: RowsRequest, after: tuple[int, ...]
) -> RowPage:
    """Return a page of runs: those that have ended, by their ends, then the others."""
    wanted, has_usage = request.filter, not _USAGE.isdisjoint(request.columns)
    await runner.committed()  # an end is in the state before it is in the accounting
    state, now = runner.state, runner.now()
    numbers = sorted({parse_selection(text).number for text in wanted.jobs})
    first = after[0] if after else 0
    if first < _LIVE:
        ended = await runner.ended_runs(RunFilter(numbers, wanted.start or 0, first, PAGE))
        runs = [_accounted(one) for one in ended]
        if not wanted.duplicates:
            runs = await _last_runs(runner, runs, ended[-1].number if ended else 0)
        shown = [ShownRun(run, state, now, group_name) for run in _chosen(runs, wanted)]
        return RowPage(shown, str(ended[-1].number) if len(ended) == PAGE else str(_LIVE))
    usage = await _live_usage(runner, nodes) if has_usage else {}
    live = [
        live_run(job, state.settings.cluster.cluster_name, usage)
        for job in selected_jobs(state, RowFilter(jobs=wanted.jobs))
        if not job.state.has_ended
    ]
    lines = (
        ((_LIVE + run.record.request.number,), ShownRun(run, state, now, group_name))
        for run in _chosen(live, wanted)
    )
    return page_of(lines, after)


def _accounted(run: AccountedRun) -> Accounted:
    outcome = run.outcome
    if outcome is None:
        return Accounted(run.record, is_over=True)
    return Accounted(run.record, is_over=True, usage=outcome.usage, status=outcome.status)


async def _live_usage(runner: CoreRunner, nodes: NodeRequests) -> dict[Run, RunUsage]:
    """Return the usage of the scripts that run now, as far as their nodes answer."""
    runs = (job.active_run for job in runner.state.jobs.values())
    usage: dict[Run, RunUsage] = {}
    for node in sorted({run.batch_node for run in runs if run is not None}):
        with suppress(FairbankError):
            answer = await nodes.ask(node, PollUsage())
            if isinstance(answer, UsageReport):
                usage.update(answer.runs)
    return usage


async def _last_runs(runner: CoreRunner, runs: Sequence[Accounted], number: int) -> list[Accounted]:
    """Return the runs of which the job has no later one: of a requeued job only the last counts."""
    jobs = sorted({run.record.request.number for run in runs})
    later = await runner.ended_runs(RunFilter(jobs, after=number)) if jobs else []
    last: dict[int, int] = {}
    for identity in (
        *(run.record.identity for run in runs),
        *(one.record.identity for one in later),
        *(runner.state.jobs[job].identity("") for job in jobs if job in runner.state.jobs),
    ):
        last[identity.job_id] = max(identity.restart, last.get(identity.job_id, 0))
    return [run for run in runs if run.record.identity.restart == last[run.record.request.number]]


def _chosen(runs: Iterable[Accounted], wanted: RowFilter) -> Iterator[Accounted]:
    """Yield the runs that fit a filter and its period."""
    selections = [parse_selection(text) for text in wanted.jobs]
    for run in runs:
        record = run.record
        allocation = None if record.run is None else record.run.allocation
        facts = SelectedFacts(record.request, record.submission, allocation, (record.state,))
        if (
            (not selections or is_among(record, selections))
            and fits(facts, wanted)
            and (wanted.end is None or record.identity.submitted < wanted.end)
        ):
            yield run


@lru_cache(maxsize=1_000)
def group_name(gid: int) -> str:
    """Return the name of a group, or its number."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
