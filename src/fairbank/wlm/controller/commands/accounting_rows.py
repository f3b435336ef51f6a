"""Rows of accounting: runs that have ended, and those of jobs that wait or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile, islice
from typing import NamedTuple

from fairbank.cluster.job import Run
from fairbank.core.errors import FairbankError
from fairbank.jobqueue.arrays import parse_selection
from fairbank.wlm.controller.commands.accounting_lines import ShownRun, live_record
from fairbank.wlm.controller.commands.job_filter import is_among, selected_jobs, test_of
from fairbank.wlm.controller.commands.steps.step_lines import (
    ShownStep,
    batch_step,
    ended_step,
    live_step,
)
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter
from fairbank.wlm.core.jobs import EndedRun
from fairbank.wlm.core.steps.step import WlmStep
from fairbank.wlm.protocol.commands import PAGE, RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import PollUsage, RunUsage, UsageReport

StepKey = tuple[Run, int]
"""Run and number of a step."""
Keyed = tuple[Sequence[int], object]
"""Line with its key, which grows from line to line."""


class RowPage(NamedTuple):
    """Lines, and the cursor of the next page; None if there is none."""

    lines: Sequence[object]
    after: str | None


_USAGE = frozenset({"processor", "virtual", "resident", "gpu_use", "total_cpu"})
"""Columns of accounting that nodes know."""


def page_of(lines: Iterable[Keyed], after: tuple[int, ...]) -> RowPage:
    """Return the page of lines after a key."""
    following = dropwhile(lambda item: tuple(item[0]) <= after, lines)
    page = list(islice(following, PAGE + 1))
    last = ".".join(map(str, page[PAGE - 1][0])) if len(page) > PAGE else None
    return RowPage([line for _, line in page[:PAGE]], last)


_LIVE = 2**62
"""First part of the keys of jobs that wait or run, which come after all ended runs."""


async def accounting_page(
    runner: CoreRunner, nodes: NodeLinks, request: RowsRequest, after: tuple[int, ...]
) -> RowPage:
    """Return a page of runs: those that have ended, by their ends, then the others.

    Each may be followed by its steps.
    """
    wanted, first = request.filter, after[0] if after else 0
    if runner.failure is None:  # what is stored is shown while no more can be stored
        await runner.committed()  # an end is in the state before it is in the accounting
    state, now = runner.state, runner.now()
    running = [*state.steps.values()] if wanted.steps else []
    is_chosen = _test_of_runs(wanted)
    shown, keys = list[ShownRun](), list[int]()
    if first < _LIVE:
        numbers = sorted({parse_selection(text).number for text in wanted.jobs})
        # The page before may have ended between two steps of the first one.
        ended = await runner.ended_runs(RunFilter(numbers, wanted.start or 0, first - 1, PAGE))
        last = {} if wanted.duplicates else await _last_restarts(runner, ended)
        for number, run, outcome in ended:
            restart = run.identity.restart
            is_last = last.get(run.request.number, restart) == restart
            if is_last and is_chosen(run):
                shown.append(ShownRun(state, run, now, outcome=outcome))
                keys.append(number)
        if wanted.steps:
            await _add_steps(runner, shown, running, {})
        page = page_of(_lines(shown, keys), after)
        is_last_page = len(ended) < PAGE
        return page._replace(
            after=page.after or str(_LIVE if is_last_page else ended[-1].number + 1)
        )
    has_usage = wanted.steps and not _USAGE.isdisjoint(request.columns)
    scripts, steps = await _live_usage(runner, nodes) if has_usage else ({}, {})
    for job in selected_jobs(state, RowFilter(jobs=wanted.jobs)):
        run = live_record(job, state.settings.cluster.cluster_name)
        if not job.state.has_ended and is_chosen(run):
            shown.append(ShownRun(state, run, now, job=job, usage=scripts.get(run.identity)))
            keys.append(_LIVE + job.number)
    if wanted.steps:
        await _add_steps(runner, shown, running, steps)
    return page_of(_lines(shown, keys), after)


def _lines(runs: Sequence[ShownRun], keys: Sequence[int]) -> Iterator[Keyed]:
    """Yield runs and their steps by key."""
    for key, run in zip(keys, runs, strict=True):
        yield (key, 0), run
        for at, step in enumerate(run.steps, 1):
            yield (key, at), step


async def _add_steps(
    runner: CoreRunner,
    runs: Sequence[ShownRun],
    running: Iterable[WlmStep],
    usages: Mapping[StepKey, RunUsage],
) -> None:
    """Add their steps to runs.

    Args:
        runner: has the steps that have ended.
        runs: the runs.
        running: steps that ran before the runs were read: since then some may have ended.
        usages: usage of these.
    """
    by_identity = {run.record.identity: run for run in runs}
    steps: dict[StepKey, ShownStep | None] = {}
    for step in running:
        if run := by_identity.get(step.run):
            key = step.run, step.number
            steps[key] = live_step(run, step, usages.get(key))
    for record in await runner.ended_steps(by_identity):
        step = record.step
        steps[step.run, step.number] = ended_step(by_identity[step.run], record)
    for run in runs:
        run.steps += filter(None, [batch_step(run)])
    for (identity, _), shown in sorted(steps.items(), key=lambda item: item[0][1]):
        by_identity[identity].steps += filter(None, [shown])


async def _live_usage(
    runner: CoreRunner, nodes: NodeLinks
) -> tuple[dict[Run, RunUsage], dict[StepKey, RunUsage]]:
    """Return the usage of the scripts and steps that run now, as far as their nodes answer."""
    runs = (job.active_run for job in runner.state.jobs.values())
    scripts: dict[Run, RunUsage] = {}
    steps: dict[StepKey, RunUsage] = {}
    for node in sorted({node for run in runs if run is not None for node in run.left}):
        with suppress(FairbankError):
            answer = await nodes.ask(node, PollUsage())
            if isinstance(answer, UsageReport):
                scripts.update(answer.runs)
                for run, number, usage in answer.steps:
                    others = steps.get((run, number), RunUsage())
                    steps[run, number] = others.with_node(usage)
    return scripts, steps


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


def _test_of_runs(wanted: RowFilter) -> Callable[[EndedRun], bool]:
    """Return the test whether a run fits a filter, its jobs and its period."""
    selections, fits = [parse_selection(text) for text in wanted.jobs], test_of(wanted)
    return lambda run: (
        (not selections or is_among(run, selections))
        and fits(run, run.run, (run.state,))
        and (wanted.end is None or run.identity.submitted < wanted.end)
    )
