"""Rows of jobs, nodes, accounting and so on, a page at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairbank.cluster.share import ShareRow
from fairbank.core.errors import InvalidInput
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
from fairbank.wlm.controller.commands.accounting_lines import ShownRun, run_cells
from fairbank.wlm.controller.commands.accounting_rows import (
    Keyed,
    NodeRequests,
    accounting_page,
    group_name,
    page_of,
)
from fairbank.wlm.controller.commands.job_filter import selected_jobs
from fairbank.wlm.controller.commands.job_lines import ShownJob, job_cells, shown_tasks
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
from fairbank.wlm.controller.core_runner import CoreRunner
from fairbank.wlm.core.effects import Table
from fairbank.wlm.core.events import Caller
from fairbank.wlm.core.requests.rights import PrivateKind, may_see
from fairbank.wlm.core.state import CoreState
from fairbank.wlm.protocol.commands import RowFilter, RowsRequest
from fairbank.wlm.protocol.messages import Registration

Cell = Any


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
    "shares": ("jobs", "usage"),
    "associations": (),
    "users": (),
    "qos": ("jobs", "qos_usage"),
}
"""Tables of the state from which the rows of a kind follow; those of the settings from none."""


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
        await accounting_page(runner, nodes, request, after)
        if kind == "accounting"
        else page_of(_lines(runner, nodes, request, after), after)
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
        "cluster": state.settings.cluster.cluster_name,
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
    for line in share_lines(runner.state, runner.now()):
        if (not wanted.users or not line["user"] or line["user"] in wanted.users) and (
            not wanted.accounts or line["account"] in wanted.accounts
        ):
            yield line


def _associations(runner: CoreRunner, wanted: RowFilter) -> Iterator[AssociationLine]:
    for line in association_lines(
        shown_accounts(runner.state), runner.settings.cluster.cluster_name
    ):
        if (not wanted.users or line.user in wanted.users) and (
            not wanted.accounts or line.account in wanted.accounts
        ):
            yield line


def _users(runner: CoreRunner, wanted: RowFilter) -> Iterator[UserLine]:
    for line in user_lines(shown_accounts(runner.state)):
        if not wanted.users or line.user in wanted.users:
            yield line


def _qos(runner: CoreRunner, wanted: RowFilter) -> Iterator[QosLine]:
    settings = runner.settings
    usage = qos_usage_fields(runner.state, runner.now())
    for line in qos_lines(settings.accounting, settings.scheduling.preemption, usage):
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
