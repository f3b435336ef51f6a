"""Rows of jobs, nodes, accounting and so on, a page at a time."""

from __future__ import annotations

import grp
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, Protocol

from fairbank.cluster.job import Run
from fairbank.cluster.share import ShareRow
from fairbank.core.errors import FairbankError, InvalidInput
from fairbank.jobqueue.arrays import parse_selection
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.machine_rows import LicenseLine, NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.sacct import AccountingLine
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine, UserLine
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.wlm.controller.commands.account_lines import (
    association_lines,
    qos_lines,
    shown_accounts,
    user_lines,
)
from fairbank.wlm.controller.commands.accounting_lines import (
    Accounted,
    ShownRun,
    live_run,
    run_cells,
)
from fairbank.wlm.controller.commands.job_filter import SelectedFacts, fits, is_among, selected_jobs
from fairbank.wlm.controller.commands.job_lines import ShownJob, job_cells, shown_tasks
from fairbank.wlm.controller.commands.machine_lines import (
    license_lines,
    node_lines,
    partition_lines,
    reservation_lines,
)
from fairbank.wlm.controller.commands.order_lines import priority_lines, share_lines
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.state_store import AccountedRun, RunFilter
from fairbank.wlm.core.effects import Table
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.requests.rights import PrivateKind, may_see
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import PAGE, RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import Message, PollUsage, Registration, RunUsage, UsageReport

Cell = Any
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


_FIELDS: Mapping[str, Sequence[str]] = {
    "jobs": JobLine._fields,
    "nodes": NodeLine._fields,
    "partitions": PartitionLine._fields,
    "reservations": ReservationLine._fields,
    "licenses": LicenseLine._fields,
    "accounting": AccountingLine._fields,
    "priorities": PriorityRow._fields,
    "shares": ShareRow.__struct_fields__,
    "associations": AssociationLine._fields,
    "users": UserLine._fields,
    "qos": QosLine._fields,
}
"""Columns of each kind of rows."""
_TABLES: Mapping[str, Sequence[Table]] = {
    "jobs": ("jobs", "partitions"),
    "nodes": ("nodes", "jobs", "partitions", "reservations"),
    "partitions": ("partitions",),
    "reservations": ("reservations",),
    "licenses": ("jobs",),
    "accounting": ("jobs",),
    "priorities": ("jobs", "usage"),
    "shares": ("usage",),
    "associations": (),
    "users": (),
    "qos": (),
}
"""Tables of the state from which the rows of a kind follow; those of the settings from none."""


_USAGE = frozenset({"processor", "virtual", "resident", "total_cpu"})
"""Columns of accounting that nodes know."""
_PRIVATE: Mapping[str, PrivateKind] = {
    "jobs": "jobs",
    "nodes": "nodes",
    "partitions": "partitions",
    "reservations": "reservations",
    "accounting": "jobs",
    "priorities": "jobs",
    "shares": "usage",
    "associations": "accounts",
    "users": "users",
}
"""Words of PrivateData that hide rows."""


async def rows_answer(
    runner: CoreRunner, nodes: NodeRequests, request: RowsRequest, caller: Caller
) -> Mapping[str, Any]:
    """Return a page of rows, without what the user may not see.

    Args:
        runner: runner of the core.
        nodes: links to the nodes, for the usage of running jobs.
        request: kind, columns, filter and cursor.
        caller: the user.

    Raises:
        FairbankError: a column, a job or the cursor is unknown.
    """
    state, kind = runner.state, request.of
    unknown = [name for name in request.columns if name not in _FIELDS[kind]]
    if unknown:
        raise InvalidInput(
            f"{kind} have no column {unknown[0][:40]!a}",
            field="columns",
            remedy=f"there are {', '.join(_FIELDS[kind])}",
        )
    # Expected starts are no table: each plan with other ones is a change too.
    change = sum(state.change_numbers[table] for table in _TABLES[kind]) << 24
    change += state.plan_changes & 0xFFFFFF
    if request.change == change:
        return {"change": change, "unchanged": True}
    after = _cursor(request.after)
    page = (
        await _accounting(runner, nodes, request, after)
        if kind == "accounting"
        else _page(_lines(runner, nodes, request, after), after)
    )
    return {
        "change": change,
        "columns": request.columns,
        "rows": [
            _cells(line, request.columns)
            for line in page.lines
            if _is_visible(state, caller, kind, line)
        ],
        "after": page.after,
        "now": runner.now().wall,
        "cluster": state.settings.cluster,
    }


def _is_visible(state: CoreState, caller: Caller, kind: str, line: Any) -> bool:
    owner = line["user"] if isinstance(line, dict) else getattr(line, "user", "")
    private = _PRIVATE.get(kind)
    return private is None or may_see(state.settings, caller, private, owner)


def _cells(line: Any, columns: Sequence[str]) -> list[Cell]:
    if isinstance(line, ShownJob):
        return job_cells(line, columns)
    if isinstance(line, ShownRun):
        return run_cells(line, columns)
    if isinstance(line, dict):
        return [line[name] for name in columns]
    return [getattr(line, name) for name in columns]


def _cursor(text: str | None) -> tuple[int, ...]:
    """Return the key after which a page begins. Raises InvalidInput."""
    try:
        return tuple(int(part) for part in text.split(".")) if text else ()
    except ValueError:
        raise InvalidInput(
            f"{str(text)[:40]!a} is not a cursor", field="after", remedy="that of the answer before"
        ) from None


def _page(lines: Iterable[Keyed], after: tuple[int, ...]) -> RowPage:
    following = (item for item in lines if tuple(item[0]) > after)
    page = list(islice(following, PAGE + 1))
    last = ".".join(map(str, page[PAGE - 1][0])) if len(page) > PAGE else None
    return RowPage([line for _, line in page[:PAGE]], last)


def _lines(
    runner: CoreRunner, nodes: NodeRequests, request: RowsRequest, after: tuple[int, ...]
) -> Iterator[Keyed]:
    """Yield the lines with their keys."""
    if request.of == "jobs":
        yield from _job_lines(runner, request.filter, after)
        return
    if request.of == "nodes":
        lines: Iterable[object] = _nodes(runner, nodes.registrations, request.filter)
    else:
        lines = _READERS[request.of](runner, request.filter)
    yield from (((place,), line) for place, line in enumerate(lines))


def _job_lines(runner: CoreRunner, wanted: RowFilter, after: tuple[int, ...]) -> Iterator[Keyed]:
    state, now = runner.state, runner.now()
    first = after[0] if after else 0
    tasks = _tasks(wanted)
    for job in selected_jobs(state, wanted, first):
        shown = ShownJob(state, job, now, group_name)
        for place, one in enumerate(shown_tasks(shown) if wanted.tasks else [shown]):
            array = one.request.array
            if not wanted.tasks or tasks is None or array is None or one.task in tasks[array]:
                yield (job.number, place), one


def _tasks(wanted: RowFilter) -> Mapping[int, set[int]] | None:
    """Return the tasks that a filter names, by array; None if it names a whole job."""
    selections = [parse_selection(text) for text in wanted.jobs]
    if not selections or any(selection.tasks is None for selection in selections):
        return None
    tasks = defaultdict[int, set[int]](set)
    for number, named in selections:
        tasks[number].update(named or ())
    return tasks


def _nodes(
    runner: CoreRunner, registrations: Mapping[str, Registration], wanted: RowFilter
) -> Iterator[NodeLine]:
    for line in node_lines(runner.state, runner.now(), registrations):
        of = set((line.partitions or "").split(","))
        if (not wanted.nodes or line.name in wanted.nodes) and (
            not wanted.partitions or not of.isdisjoint(wanted.partitions)
        ):
            yield line


def _partitions(runner: CoreRunner, wanted: RowFilter) -> Iterator[PartitionLine]:
    for line in partition_lines(runner.state):
        if not wanted.partitions or line.name in wanted.partitions:
            yield line


def _reservations(runner: CoreRunner, wanted: RowFilter) -> Iterator[ReservationLine]:
    for line in reservation_lines(runner.state, runner.now()):
        if not wanted.reservations or line.name in wanted.reservations:
            yield line


def _licenses(runner: CoreRunner, wanted: RowFilter) -> Iterator[LicenseLine]:
    for line in license_lines(runner.state, runner.now()):
        if not wanted.licenses or line.name in wanted.licenses:
            yield line


def _priorities(runner: CoreRunner, wanted: RowFilter) -> Iterator[PriorityRow]:
    numbers = {job.number for job in selected_jobs(runner.state, wanted)}
    return (line for line in priority_lines(runner.state, runner.now()) if line.job in numbers)


def _shares(runner: CoreRunner, wanted: RowFilter) -> Iterator[dict[str, Any]]:
    for line in share_lines(runner.state):
        if (not wanted.users or not line["user"] or line["user"] in wanted.users) and (
            not wanted.accounts or line["account"] in wanted.accounts
        ):
            yield line


def _associations(runner: CoreRunner, wanted: RowFilter) -> Iterator[AssociationLine]:
    for line in association_lines(
        shown_accounts(runner.settings, runner.state), runner.state.settings.cluster
    ):
        if (not wanted.users or line.user in wanted.users) and (
            not wanted.accounts or line.account in wanted.accounts
        ):
            yield line


def _users(runner: CoreRunner, wanted: RowFilter) -> Iterator[UserLine]:
    for line in user_lines(shown_accounts(runner.settings, runner.state)):
        if not wanted.users or line.user in wanted.users:
            yield line


def _qos(runner: CoreRunner, wanted: RowFilter) -> Iterator[QosLine]:
    settings = runner.settings
    for line in qos_lines(settings.accounting, settings.scheduling.preemption):
        if not wanted.qos or line.name in wanted.qos:
            yield line


_READERS: Mapping[str, Callable[[CoreRunner, RowFilter], Iterable[object]]] = {
    "partitions": _partitions,
    "reservations": _reservations,
    "licenses": _licenses,
    "priorities": _priorities,
    "shares": _shares,
    "associations": _associations,
    "users": _users,
    "qos": _qos,
}


# --- accounting ---

_LIVE = 2**62
"""First part of the keys of jobs that wait or run, which come after all ended runs."""


async def _accounting(
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
        live_run(job, state.settings.cluster, usage)
        for job in selected_jobs(state, RowFilter(jobs=wanted.jobs))
        if not job.state.has_ended
    ]
    lines = (
        ((_LIVE + run.record.request.number,), ShownRun(run, state, now, group_name))
        for run in _chosen(live, wanted)
    )
    return _page(lines, after)


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
