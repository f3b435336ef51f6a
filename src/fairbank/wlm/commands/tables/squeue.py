"""squeue: jobs in the queue."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.hostlist import expand
from fairbank.report.slurm import squeue
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.layout import (
    Columns,
    SlurmColumn,
    TableFormat,
    parse_letters,
    parse_names,
)
from fairbank.report.slurm.notation import JOB_STATES
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import (
    CommandLine,
    CommandOption,
    read_command_line,
    split_jobs,
)
from fairbank.wlm.commands.tables.rows import (
    ACTIVE_STATES,
    ShownRows,
    check_cluster,
    fetch,
    print_rows,
    repeat,
    report_unknown,
    states_of,
    users_of,
)

OPTIONS = (
    CommandOption("account", "A", "NAMES", "only jobs of these accounts", "SQUEUE_ACCOUNT"),
    CommandOption("all", "a", "", "no effect: no partition is hidden", "SQUEUE_ALL"),
    CommandOption("array", "r", "", "show each task of an array in a line", "SQUEUE_ARRAY"),
    CommandOption("noheader", "h", "", "print no header"),
    CommandOption("iterate", "i", "SECONDS", "repeat the output until a signal"),
    CommandOption("jobs", "j", "JOBS", "only these jobs"),
    CommandOption("json", "", "[VERSION]", "print JSON"),
    CommandOption("long", "l", "", "show more columns"),
    CommandOption("licenses", "L", "NAMES", "only jobs with these licenses", "SQUEUE_LICENSES"),
    CommandOption("clusters", "M", "NAMES", "name of this cluster", "SLURM_CLUSTERS"),
    CommandOption("me", "", "", "only jobs of the user"),
    CommandOption("name", "n", "NAMES", "only jobs with these names", "SQUEUE_NAMES"),
    CommandOption("noconvert", "", "", "print numbers without units"),
    CommandOption("format", "o", "FORMAT", "columns by letters, such as '%.18i %R'"),
    CommandOption("Format", "O", "FORMAT", "columns by names, such as JobID:.18,Name"),
    CommandOption("partition", "p", "NAMES", "only jobs in these partitions", "SQUEUE_PARTITION"),
    CommandOption(
        "priority", "P", "", "show a pending job in each of its partitions", "SQUEUE_PRIORITY"
    ),
    CommandOption("qos", "q", "NAMES", "only jobs with these QOS", "SQUEUE_QOS"),
    CommandOption("reservation", "R", "NAMES", "only jobs in these reservations"),
    CommandOption(
        "sort", "S", "COLUMNS", "letters of columns, - reverses; default: P,t,-p", "SQUEUE_SORT"
    ),
    CommandOption("start", "", "", "show the expected starts of pending jobs"),
    CommandOption("steps", "s", "[STEPS]", "show steps, or only these: -s 7.0,8.1"),
    CommandOption("states", "t", "STATES", "only jobs in these states, or all", "SQUEUE_STATES"),
    CommandOption("user", "u", "NAMES", "only jobs of these users", "SQUEUE_USERS"),
    CommandOption("verbose", "v", "", "print the time"),
    CommandOption("nodelist", "w", "NODES", "only jobs on these nodes"),
)
_LISTS = {
    "account": "accounts",
    "licenses": "licenses",
    "name": "names",
    "partition": "partitions",
    "qos": "qos",
    "reservation": "reservations",
}
"""Fields of the filter by options."""
_STATE_ORDER = {state: place for place, state in enumerate(JOB_STATES)}
_BY_STATE = frozenset({"shown_state", "short_state"})


def run(name: str, words: Sequence[str]) -> int:
    """Print the queue and return the exit code."""
    line = read_command_line(name, "[OPTIONS]", OPTIONS, words)
    if line is None:
        return 0
    with Controller() as controller:
        return repeat(line, partial(_show, controller, line))


def _show(controller: Controller, line: CommandLine) -> int:
    if "steps" in line.options:
        return _show_steps(controller, line)
    if "json" in line.options:
        from fairbank.report.slurm import json_forms

        listing = _jobs(controller, line, JobLine._fields)
        print(json_forms.jobs(listing.rows, listing.now))
        return 0
    form = _format(line)
    report_unknown("squeue", squeue.UNKNOWN_COLUMN, form.unknown)
    keys = _sort_keys(line)
    shown = [cell.column.field for cell in form.cells if cell.column]
    wanted = [*shown, *(column.field for column, _ in keys), "state"]
    listing = _jobs(controller, line, wanted)
    print_rows(line, _sorted(listing.rows, keys), form, listing.now)
    return 0


def _written_format(line: CommandLine, columns: Columns) -> TableFormat | None:
    options = line.options
    if "Format" in options:
        return parse_names(options["Format"], columns)
    return parse_letters(options["format"], columns) if "format" in options else None


def _format(line: CommandLine) -> TableFormat:
    """Return the columns. A format counts more than --long, and that more than a variable."""
    options = line.options
    if written := _written_format(line, squeue.COLUMNS):
        return written
    if "start" in options or "long" in options:
        form = squeue.START_FORMAT if "start" in options else squeue.LONG_FORMAT
        return parse_letters(form, squeue.COLUMNS)
    if names := os.environ.get("SQUEUE_FORMAT2"):
        return parse_names(names, squeue.COLUMNS)
    return parse_letters(os.environ.get("SQUEUE_FORMAT") or squeue.FORMAT, squeue.COLUMNS)


def _jobs(controller: Controller, line: CommandLine, fields: Sequence[str]) -> ShownRows:
    """Return the jobs with these fields that the options select."""
    matching: dict[str, Any] = {option: line.items(name) for name, option in _LISTS.items()}
    matching["jobs"] = split_jobs(line.options.get("jobs", ""))
    default = ("PENDING",) if "start" in line.options else ACTIVE_STATES
    states = states_of(line.options.get("states"), default)
    # Of a single job it must be known whether it exists in another state.
    is_single = len(matching["jobs"]) == 1
    matching |= {
        "states": [] if is_single else states,
        "users": users_of(line),
        "nodes": expand(line.options.get("nodelist", "")),
        "tasks": "array" in line.options,
    }
    wanted = [*fields, "state", "flag"] if is_single else fields
    split = "priority" in line.options
    listing = fetch(
        controller, "jobs", JobLine, [*wanted, "partition"] if split else wanted, matching
    )
    check_cluster(line, listing.cluster)
    if is_single and not listing.rows:
        raise NotFound(f"there is no job {matching['jobs'][0]}", field="job")
    rows = [row for row in listing.rows if not is_single or not states or _is_in(row, states)]
    if split:
        rows = [part for row in rows for part in _by_partition(row)]
    return listing._replace(rows=rows)


def _is_in(row: Any, states: Sequence[str]) -> bool:
    return row.state in states or row.flag in states


def _by_partition(row: Any) -> list[Any]:
    return [row._replace(partition=partition) for partition in row.partition.split(",")]


def _show_steps(controller: Controller, line: CommandLine) -> int:
    """Show the steps that run; those that are named may be the operand, as with Slurm."""
    from fairbank.report.slurm import steps

    named = split_jobs(line.options["steps"]) or line.jobs()
    for name in named:
        if not re.fullmatch(r"\d+(_\d+)?(\.\w+)?", name):
            raise InvalidInput(f"Invalid job_step id: {name[:40]}", remedy="write JOB.STEP")
    form = _written_format(line, steps.COLUMNS) or parse_letters(steps.FORMAT, steps.COLUMNS)
    report_unknown("squeue", steps.UNKNOWN_COLUMN, form.unknown)
    matching = {
        "jobs": [*split_jobs(line.options.get("jobs", "")), *(_job_of(name) for name in named)],
        "users": users_of(line),
        "partitions": line.items("partition"),
    }
    shown = [cell.column.field for cell in form.cells if cell.column]
    listing = fetch(
        controller, "steps", steps.StepLine, [*shown, "label", "place", "nodes"], matching
    )
    check_cluster(line, listing.cluster)
    hosts = set(expand(line.options.get("nodelist", "")))
    rows = [
        row
        for row in listing.rows
        if (not named or {row.label, row.job} & set(named))
        and (not hosts or not hosts.isdisjoint(expand(row.nodes)))
    ]
    print_rows(line, sorted(rows, key=lambda row: row.place), form, listing.now)
    return 0


def _job_of(step: str) -> str:
    return step.partition(".")[0]


# --- order ---


def _sort_keys(line: CommandLine) -> list[tuple[SlurmColumn, bool]]:
    """Return the columns to sort by, and which are reversed. squeue ignores unknown letters."""
    text = line.options.get("sort", "S" if "start" in line.options else "P,t,-p")
    letters = {column.letter: column for column in squeue.COLUMNS.values() if column.letter}
    keys = []
    is_reversed = False
    for letter in text:
        if letter in "+-":
            is_reversed = letter == "-"
        elif letter in letters:
            keys.append((letters[letter], is_reversed))
            is_reversed = False
    return keys


def _sorted(rows: list[Any], keys: Sequence[tuple[SlurmColumn, bool]]) -> list[Any]:
    ordered = list(rows)
    for column, is_reversed in reversed(keys):
        ordered.sort(key=_sort_key(column.field, rows), reverse=is_reversed)
    return ordered


def _sort_key(field: str, rows: Sequence[Any]) -> Callable[[Any], Any]:
    """Return the function that returns the sort key of a job; what is not set comes last."""
    if field in _BY_STATE:
        return lambda row: _STATE_ORDER[row.state]
    value = attrgetter(field)
    if None not in map(value, rows):
        return value
    return lambda row: (True, 0) if value(row) is None else (False, value(row))
