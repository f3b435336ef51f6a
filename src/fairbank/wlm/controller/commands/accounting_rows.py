"""Rows of accounting: runs that have ended, and those of jobs that wait or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError
from fairbank.jobqueue.arrays import JobSelection, parse_selection
from fairbank.wlm.controller.commands.accounting_lines import ShownRun, live_record
from fairbank.wlm.controller.commands.job_filter import SelectedFacts, fits, is_among, selected_jobs
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter
from fairbank.wlm.core.jobs import EndedRun
from fairbank.wlm.protocol.commands import PAGE, RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import PollUsage, RunUsage, UsageReport

Keyed = tuple[Sequence[int], object]
"""Line with its key, which grows from line to line."""


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
    runner: CoreRunner, nodes: NodeLinks, request: RowsRequest, after: tuple[int, ...]
) -> RowPage:
    """Return a page of runs: those that have ended, by their ends, then the others."""
    wanted, first = request.filter, after[0] if after else 0
    await runner.committed()  # an end is in the state before it is in the accounting
    state, now = runner.state, runner.now()
    selections = [parse_selection(text) for text in wanted.jobs]
    if first < _LIVE:
        numbers = sorted({selection.number for selection in selections})
        ended = await runner.ended_runs(RunFilter(numbers, wanted.start or 0, first, PAGE))
        last = {} if wanted.duplicates else await _last_restarts(runner, ended)
        runs = []
        for _, run, outcome in ended:
            restart = run.identity.restart
            is_last = last.get(run.request.number, restart) == restart
            if is_last and _is_chosen(run, selections, wanted):
                usage, status = (outcome.usage, outcome.status) if outcome else (None, None)
                runs.append(ShownRun(state, run, now, usage=usage, status=status))
        return RowPage(runs, str(ended[-1].number if len(ended) == PAGE else _LIVE))
    has_usage = not _USAGE.isdisjoint(request.columns)
    usages = await _live_usage(runner, nodes) if has_usage else {}
    lines = list[Keyed]()
    for job in selected_jobs(state, RowFilter(jobs=wanted.jobs)):
        run = live_record(job, state.settings.cluster.cluster_name)
        if not job.state.has_ended and _is_chosen(run, selections, wanted):
            usage = usages.get(run.identity)
            shown = ShownRun(state, run, now, job=job, usage=usage)
            lines.append(((_LIVE + job.number,), shown))
    return page_of(lines, after)


async def _live_usage(runner: CoreRunner, nodes: NodeLinks) -> dict[Run, RunUsage]:
    """Return the usage of the scripts that run now, as far as their nodes answer."""
    runs = (job.active_run for job in runner.state.jobs.values())
    usage: dict[Run, RunUsage] = {}
    for node in sorted({run.batch_node for run in runs if run is not None}):
        with suppress(FairbankError):
            answer = await nodes.ask(node, PollUsage())
            if isinstance(answer, UsageReport):
                usage.update(answer.runs)
    return usage


async def _last_restarts(runner: CoreRunner, runs: Sequence[AccountedRun]) -> Mapping[int, int]:
    """Return the restart of the last run of each job: of a requeued job only that one counts."""
    jobs = sorted({run.record.request.number for run in runs})
    later = await runner.ended_runs(RunFilter(jobs, after=runs[-1].number)) if runs else []
    last = Counter[int]()
    for identity in (
        *(run.record.identity for run in (*runs, *later)),
        *(runner.state.jobs[job].identity("") for job in jobs if job in runner.state.jobs),
    ):
        last[identity.job_id] = max(identity.restart, last[identity.job_id])
    return last


def _is_chosen(run: EndedRun, selections: Sequence[JobSelection], wanted: RowFilter) -> bool:
    """Return True if a run fits a filter, its jobs and its period."""
    allocation = None if run.run is None else run.run.allocation
    facts = SelectedFacts(run.request, run.submission, allocation, (run.state,))
    return (
        (not selections or is_among(run, selections))
        and fits(facts, wanted)
        and (wanted.end is None or run.identity.submitted < wanted.end)
    )
