"""Rows of jobs, nodes, accounting and so on, a page at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.jobqueue.arrays import parse_selection
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.machine_rows import LicenseLine, NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.sacct import AccountingLine
from fairbank.report.slurm.sacctmgr import AssociationLine, QosLine, UserLine
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.report.slurm.steps import StepLine
from fairbank.wlm.controller.commands.account_lines import (
    association_lines,
    qos_lines,
    shown_accounts,
    user_lines,
)
from fairbank.wlm.controller.commands.accounting_lines import ShownRun
from fairbank.wlm.controller.commands.accounting_rows import Keyed, accounting_page, page_of
from fairbank.wlm.controller.commands.job_filter import has, selected_jobs
from fairbank.wlm.controller.commands.job_lines import FIELDS_OF_RECORD, ShownJob, shown_tasks
from fairbank.wlm.controller.commands.machine_lines import (
    license_lines,
    node_lines,
    partition_lines,
    reservation_lines,
)
from fairbank.wlm.controller.commands.order_lines import (
    priority_lines,
    qos_usage_fields,
    share_lines,
)
from fairbank.wlm.controller.commands.steps.step_lines import ShownStep, step_lines
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.controller.nodes.node_link import NodeLinks
from fairbank.wlm.core.effects import Table
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.jobs import Moment, WlmJob
from fairbank.wlm.core.requests.rights import PrivateKind, may_see
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import Registration

COLUMNS_MAX = 4
"""Most lists of columns of which rows are kept."""

_encode = msgspec.json.Encoder().encode


class RowKind(NamedTuple):
    """Kind of rows.

    columns  columns that a request may name
    tables   tables of the state from which the rows follow; those of the settings follow from none
    private  word of PrivateData that hides the rows from other users; None: they are never hidden
    lines    returns the lines that fit a filter; None: they are read in another way
    """

    columns: Sequence[str]
    tables: Sequence[Table]
    private: PrivateKind | None
    lines: Callable[[CoreState, Moment, RowFilter], Iterable[Any]] | None = None


class KeptRow(NamedTuple):
    """Row of a waiting job as JSON, its user, and the record from which it was made."""

    row: msgspec.Raw
    user: str
    job: WlmJob


class JobRows:
    """Rows of the jobs of a controller.

    Most jobs wait, and their records do not change from one request to the next: their rows are
    kept, by columns and job. 10,000 of them take 15 ms instead of 90.

    Invariant: a kept row follows from the record alone, which is immutable, so that it counts as
    long as the job has this very record.
    """

    def __init__(self) -> None:
        self._kept: dict[Sequence[str], dict[int, KeptRow]] = {}

    def lines(
        self, state: CoreState, now: Moment, request: RowsRequest, first: int = 0
    ) -> Iterator[Keyed]:
        """Yield the lines of the jobs that a request selects, from a number on."""
        wanted = request.filter
        if wanted.tasks:
            tasks = _tasks(wanted)
            for job in selected_jobs(state, wanted, first):
                for place, shown in enumerate(shown_tasks(ShownJob(state, job, now))):
                    array = shown.request.array
                    if tasks is None or array is None or shown.task in tasks[array]:
                        yield (job.number, place), shown
            return
        kept = self._rows_of(request.columns, len(state.jobs))
        for job in selected_jobs(state, wanted, first):
            number, begin = job.request.number, job.request.eligible
            row = kept.get(number)
            if row is not None and row.job is job and begin <= now.wall:
                yield (number, 0), row
                continue
            shown = ShownJob(state, job, now)
            if shown.waits and begin <= now.wall and FIELDS_OF_RECORD.issuperset(request.columns):
                cells = msgspec.Raw(_encode(shown.cells(request.columns)))
                kept[number] = row = KeptRow(cells, shown.user, job)
                yield (number, 0), row
            else:
                yield (number, 0), shown

    def _rows_of(self, columns: Sequence[str], jobs: int) -> dict[int, KeptRow]:
        """Return the kept rows with some columns, no more than there are jobs."""
        rows = self._kept.setdefault(columns, {})
        if len(rows) > jobs:  # some have ended
            rows.clear()
        if len(self._kept) > COLUMNS_MAX:
            del self._kept[next(iter(self._kept))]
        return rows


def _tasks(wanted: RowFilter) -> Mapping[int, set[int]] | None:
    """Return the tasks that a filter names, by array; None if it names a whole job."""
    selections = [parse_selection(text) for text in wanted.jobs]
    if not selections or any(selection.tasks is None for selection in selections):
        return None
    tasks = defaultdict[int, set[int]](set)
    for number, named in selections:
        tasks[number].update(named or ())
    return tasks


async def rows_answer(
    runner: CoreRunner, nodes: NodeLinks, jobs: JobRows, request: RowsRequest, caller: Caller
) -> Mapping[str, Any]:
    """Return a page of rows, without what the user may not see.

    Raises FairbankError if a column, a job or the cursor is unknown.
    """
    state, kind = runner.state, _KINDS[request.of]
    unknown = [name for name in request.columns if name not in kind.columns]
    if unknown:
        raise InvalidInput(
            f"{request.of} have no column {unknown[0][:40]!a}",
            field="columns",
            remedy=f"there are {', '.join(kind.columns)}",
        )
    # Expected starts are no table: each plan with other ones is a change too.
    change = sum(state.change_numbers[table] for table in kind.tables) << 24
    change += state.plan_changes & 0xFFFFFF
    if request.change == change:
        return {"change": change, "unchanged": True}
    after = _cursor(request.after)
    if request.of == "accounting":
        page = await accounting_page(runner, nodes, request, after)
    elif request.of == "jobs":
        first = after[0] if after else 0
        page = page_of(jobs.lines(state, runner.now(), request, first), after)
    else:
        wanted, now = request.filter, runner.now()
        lines = (
            _nodes(state, now, wanted, nodes.registrations)
            if kind.lines is None
            else kind.lines(state, now, wanted)
        )
        page = page_of((((place,), line) for place, line in enumerate(lines)), after)
    settings, private = state.settings, kind.private
    sees_all = private is not None and may_see(settings, caller, private)
    return {
        "change": change,
        "columns": request.columns,
        "rows": [
            _cells(line, request.columns)
            for line in page.lines
            if private is None
            or sees_all
            or may_see(settings, caller, private, getattr(line, "user", ""))
        ],
        "after": page.after,
        "now": runner.now().wall,
        "cluster": settings.cluster.cluster_name,
    }


def _cells(line: Any, columns: Sequence[str]) -> Any:
    if isinstance(line, KeptRow):
        return line.row
    if isinstance(line, ShownJob | ShownRun | ShownStep):
        return line.cells(columns)
    values = (getattr(line, name) for name in columns)
    return ["inf" if value == math.inf else value for value in values]  # JSON has no such number


def _cursor(text: str | None) -> tuple[int, ...]:
    """Return the key after which a page begins. Raises InvalidInput."""
    try:
        return tuple(int(part) for part in text.split(".")) if text else ()
    except ValueError:
        raise InvalidInput(
            f"{str(text)[:40]!a} is not a cursor", field="after", remedy="that of the answer before"
        ) from None


def _nodes(
    state: CoreState, now: Moment, wanted: RowFilter, registrations: Mapping[str, Registration]
) -> Iterable[NodeLine]:
    return (
        line
        for line in node_lines(state, now, registrations)
        if has(wanted.nodes, line.name)
        and has(wanted.partitions, *(line.partitions or "").split(","))
    )


def _partitions(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[PartitionLine]:
    return (line for line in partition_lines(state) if has(wanted.partitions, line.name))


def _reservations(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[ReservationLine]:
    return (line for line in reservation_lines(state, now) if has(wanted.reservations, line.name))


def _licenses(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[LicenseLine]:
    return (line for line in license_lines(state, now) if has(wanted.licenses, line.name))


def _priorities(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[PriorityRow]:
    numbers = {job.number for job in selected_jobs(state, wanted)}
    return (line for line in priority_lines(state, now) if line.job in numbers)


def _shares(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[ShareRow]:
    return (
        line
        for line in share_lines(state, now)
        if (not line.user or has(wanted.users, line.user)) and has(wanted.accounts, line.account)
    )


def _associations(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[AssociationLine]:
    lines = association_lines(shown_accounts(state), state.settings.cluster.cluster_name)
    return (
        line
        for line in lines
        if has(wanted.users, line.user) and has(wanted.accounts, line.account)
    )


def _users(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[UserLine]:
    return (line for line in user_lines(shown_accounts(state)) if has(wanted.users, line.user))


def _qos(state: CoreState, now: Moment, wanted: RowFilter) -> Iterable[QosLine]:
    settings, usage = state.settings, qos_usage_fields(state, now)
    lines = qos_lines(settings.accounting, settings.scheduling.preemption, usage)
    return (line for line in lines if has(wanted.qos, line.name))


_KINDS: Mapping[str, RowKind] = {
    "jobs": RowKind(JobLine._fields, ("jobs", "partitions"), "jobs"),
    "nodes": RowKind(NodeLine._fields, ("nodes", "jobs", "partitions", "reservations"), "nodes"),
    "partitions": RowKind(PartitionLine._fields, ("partitions",), "partitions", _partitions),
    "reservations": RowKind(
        ReservationLine._fields, ("reservations",), "reservations", _reservations
    ),
    "licenses": RowKind(LicenseLine._fields, ("jobs",), None, _licenses),
    "accounting": RowKind(AccountingLine._fields, ("jobs", "steps"), "jobs"),
    "priorities": RowKind(PriorityRow._fields, ("jobs", "usage"), "jobs", _priorities),
    "shares": RowKind(ShareRow._fields, ("jobs", "usage"), "usage", _shares),
    "associations": RowKind(AssociationLine._fields, (), "accounts", _associations),
    "users": RowKind(UserLine._fields, (), "users", _users),
    "steps": RowKind(StepLine._fields, ("steps", "jobs"), "jobs", step_lines),
    "qos": RowKind(QosLine._fields, ("jobs", "qos_usage"), None, _qos),
}
