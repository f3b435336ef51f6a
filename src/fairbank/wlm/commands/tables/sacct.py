"""sacct and sstat: accounting of jobs, and usage of running ones."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import expand
from fairbank.report.slurm import accounting_json, sacct
from fairbank.report.slurm.layout import SlurmColumn, field_list
from fairbank.report.slurm.notation import UNITS, Notation
from fairbank.report.slurm.sacct import AccountingLine, GpuUse, TaskUsage
from fairbank.report.slurm.steps import BATCH
from fairbank.unix_users import user_name
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import (
    CommandLine,
    CommandOption,
    read_command_line,
    split_jobs,
)
from fairbank.wlm.commands.tables.rows import (
    ShownRows,
    check_cluster,
    fetch,
    notation,
    print_fields,
    read_fields,
    states_of,
    users_of,
)
from fairbank.wlm.commands.times import parse_time

_FORM = (
    CommandOption("delimiter", "", "TEXT", "text between the cells of -p and -P; default: |"),
    CommandOption("helpformat", "e", "", "list the columns"),
    CommandOption("jobs", "j", "JOBS", "only these jobs and steps"),
    CommandOption("noheader", "n", "", "print no header"),
    CommandOption("noconvert", "", "", "print numbers without units"),
    CommandOption("parsable", "p", "", "separate cells by |, also after the last"),
    CommandOption("parsable2", "P", "", "separate cells by |"),
    CommandOption("verbose", "v", "", "no effect"),
)
"""Options that both commands have."""
SACCT_OPTIONS = (
    *_FORM,
    CommandOption("allusers", "a", "", "jobs of all users"),
    CommandOption("accounts", "A", "NAMES", "only jobs of these accounts"),
    CommandOption("brief", "b", "", "job, state and exit code"),
    CommandOption("batch-script", "B", "", "print the batch script of each job"),
    CommandOption("duplicates", "D", "", "also earlier runs of requeued jobs"),
    CommandOption("endtime", "E", "TIME", "only jobs that existed before this time"),
    CommandOption("format", "o", "COLUMNS", "columns such as jobid,state%20", "SACCT_FORMAT"),
    CommandOption("help", "h", "", "show this help"),
    CommandOption("nnodes", "i", "MIN[-MAX]", "only jobs with so many nodes"),
    CommandOption("json", "", "[VERSION]", "print JSON"),
    CommandOption("long", "l", "", "show most columns"),
    CommandOption("allclusters", "L", "", "no effect: there is one cluster"),
    CommandOption("clusters", "M", "NAMES", "name of this cluster", "SLURM_CLUSTERS"),
    CommandOption("nodelist", "N", "NODES", "only jobs on these nodes"),
    CommandOption("name", "", "NAMES", "only jobs with these names"),
    CommandOption("qos", "q", "NAMES", "only jobs with these QOS"),
    CommandOption("partition", "r", "NAMES", "only jobs in these partitions"),
    CommandOption("state", "s", "STATES", "only jobs in these states"),
    CommandOption("starttime", "S", "TIME", "only jobs that existed after this time"),
    CommandOption("truncate", "T", "", "cut starts and ends to the period"),
    CommandOption("user", "u", "NAMES", "only jobs of these users"),
    CommandOption("uid", "", "NAMES", "the same"),
    CommandOption("units", "", "UNIT", f"unit of sizes: one of {UNITS}"),
    CommandOption("wckeys", "W", "NAMES", "only jobs with these keys"),
    CommandOption("allocations", "X", "", "no steps"),
)
SSTAT_OPTIONS = (
    *_FORM,
    CommandOption("allsteps", "a", "", "all steps of the jobs"),
    CommandOption("format", "o", "COLUMNS", "columns such as jobid,maxrss%12", "SSTAT_FORMAT"),
    CommandOption("help", "h", "", "show this help"),
    CommandOption("pidformat", "i", "", "the processes"),
)
_NEEDED = ("job_id", "label", "state", "submitted", "started", "ended", "step", "allocated_nodes")
_LIVE = ("RUNNING", "SUSPENDED")
_USAGES: Mapping[str, type[TaskUsage | GpuUse]] = {
    "processor": TaskUsage,
    "virtual": TaskUsage,
    "resident": TaskUsage,
    "gpu_use": GpuUse,
}
OWN_EXIT_CODE = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"}
)
"""States of runs that have the exit code of their batch step; it is 0:0 with all others."""


def run(name: str, words: Sequence[str]) -> int:
    """Print the accounting, as sacct or sstat, and return the exit code."""
    is_stat = name == "sstat"
    line = read_command_line(name, "[OPTIONS]", SSTAT_OPTIONS if is_stat else SACCT_OPTIONS, words)
    if line is None:
        return 0
    columns = sacct.SSTAT if is_stat else sacct.SACCT
    if "helpformat" in line.options:
        print(field_list(columns), end="")
        return 0
    fields = read_fields(_format(line, is_stat), columns)
    with Controller() as controller:
        if is_stat:
            return _show_usage(controller, line, fields)
        if "batch-script" in line.options:
            return _show_scripts(controller, line)
        return _show_accounting(controller, line, fields)


def _format(line: CommandLine, is_stat: bool) -> str:
    options = line.options
    if is_stat:
        default = sacct.PIDS_FORMAT if "pidformat" in options else sacct.STAT_FORMAT
    elif "brief" in options:
        default = sacct.BRIEF_FORMAT
    else:
        default = sacct.LONG_FORMAT if "long" in options else sacct.FORMAT
    has_default = {"brief", "long", "pidformat"} & set(options)
    return default if has_default else options.get("format") or default


def _show_accounting(
    controller: Controller, line: CommandLine, fields: Sequence[SlurmColumn]
) -> int:
    is_json = "json" in line.options
    names = AccountingLine._fields if is_json else [column.field for column in fields]
    listing = _runs(controller, line, names, has_steps="allocations" not in line.options)
    chosen = _chosen_steps(line)
    rows = [_shown(row) for row in listing.rows if _is_chosen(row, chosen)]
    if is_json:
        print(accounting_json.accounting(rows))
        return 0
    print_fields(line, rows, fields, _notation(line))
    return 0


def _notation(line: CommandLine) -> Notation:
    unit = line.options.get("units", "").upper()
    if unit and (len(unit) > 1 or unit not in UNITS):
        raise InvalidInput(f"Invalid --units value {unit[:10]!r}", remedy=f"one of {UNITS}")
    return notation(shortens="noconvert" not in line.options)._replace(unit=unit)


# --- runs and their steps ---


def _runs(
    controller: Controller, line: CommandLine, names: Sequence[str], *, has_steps: bool
) -> ShownRows:
    """Return the runs that the options select, each perhaps with its steps behind it."""
    start, end = _period(line)
    matching = {
        "jobs": [job.partition(".")[0] for job in split_jobs(line.options.get("jobs", ""))],
        "users": _users(line),
        "accounts": line.items("accounts"),
        "partitions": line.items("partition"),
        "states": _states(line),
        "names": line.items("name"),
        "qos": line.items("qos"),
        "nodes": expand(line.options.get("nodelist", "")),
        "start": start,
        "end": end,
        "duplicates": "duplicates" in line.options,
        "steps": has_steps,
    }
    wanted = [*names, *_NEEDED, "allocated_nodes", "wckey"]
    listing = fetch(controller, "accounting", AccountingLine, dict.fromkeys(wanted), matching)
    check_cluster(line, listing.cluster)
    runs = list[list[Any]]()
    for row in listing.rows:
        if not row.step:
            runs.append([])
        runs[-1].append(row)
    runs = sorted((run for run in runs if _is_wanted(run[0], line)), key=lambda run: _place(run[0]))
    rows = [row for run in runs for row in run]
    if "truncate" in line.options:
        rows = [_truncated(row, start, end) for row in rows]
    return listing._replace(rows=rows)


def _place(row: Any) -> tuple[int, int, int]:
    """Return the sort key of a run: job, task, submission."""
    job, _, task = row.label.partition("_")
    return int(job), int(task) if task.isdigit() else -1, row.submitted or 0


def _users(line: CommandLine) -> list[str]:
    """Return the users whose jobs are shown: without a selection, the caller."""
    options = line.options
    if {"user", "uid"} & options.keys():
        return users_of(line, "user", "uid")
    if "allusers" in options or "jobs" in options or os.getuid() == 0:
        return []
    return [user_name(os.getuid())]


def _states(line: CommandLine) -> list[str]:
    try:
        return states_of(line.options.get("state"))
    except InvalidInput as bad:
        raise InvalidInput("unrecognized job state value", remedy=bad.remedy) from bad


def _period(line: CommandLine) -> tuple[int | None, int | None]:
    """Return start and end of the period: today, or with --jobs any time."""
    now = int(time.time())
    start, end = line.options.get("starttime"), line.options.get("endtime")
    if start is None and "jobs" not in line.options:
        start = "today"
    return (
        None if start is None else parse_time(start, now, field="--starttime"),
        None if end is None else parse_time(end, now, field="--endtime"),
    )


def _is_wanted(row: Any, line: CommandLine) -> bool:
    """Return True for the number of nodes and the keys that are asked for."""
    least, dash, most = line.options.get("nnodes", "0-").partition("-")
    if not least.isdigit() or (most and not most.isdigit()):
        raise InvalidInput(f"invalid --nnodes value {line.options['nnodes'][:40]!r}")
    high = int(most) if most else sys.maxsize if dash else int(least)
    keys = line.items("wckeys")
    return int(least) <= row.allocated_nodes <= high and (not keys or row.wckey in keys)


def _truncated(row: Any, start: int | None, end: int | None) -> Any:
    first, last = row.started, row.ended
    if first is not None and start is not None:
        first = max(first, start)
    if end is not None and first is not None:
        last = end if last is None else min(last, end)
    changes: dict[str, Any] = {"started": first, "ended": last}
    if "elapsed" in row._fields and first is not None and last is not None:
        changes["elapsed"] = max(last - first, 0)
    return row._replace(**changes)


def _chosen_steps(line: CommandLine) -> Mapping[str, set[str]]:
    """Return the steps that --jobs names, by job; those of a job without a step are all."""
    chosen: dict[str, set[str]] = {}
    for text in split_jobs(line.options.get("jobs", "")):
        job, _, step = text.partition(".")
        chosen.setdefault(job, set()).add(step)
    return {job: steps for job, steps in chosen.items() if "" not in steps}


def _is_chosen(row: Any, steps: Mapping[str, set[str]]) -> bool:
    """Return True if the row may be shown; a job is not if only steps of it are named."""
    named = steps.get(row.label) or steps.get(row.label.partition("_")[0])
    return named is None or row.step in named


def _shown(row: Any) -> Any:
    """Return a row with its usages as they are printed, and the exit code of a run."""
    values: dict[str, Any] = {
        name: usage if (usage := getattr(row, name)) is None else kind(*usage)
        for name, kind in _USAGES.items()
        if name in row._fields
    }
    if "exit_code" in row._fields and not row.step and row.state not in OWN_EXIT_CODE:
        values["exit_code"] = (0, 0)
    return row._replace(**values)


# --- other forms ---


def _show_scripts(controller: Controller, line: CommandLine) -> int:
    if "jobs" not in line.options:
        raise InvalidInput("--batch-script needs --jobs", field="--batch-script")
    for row in _runs(controller, line, [], has_steps=False).rows:
        title = f"Batch Script for {row.label}"
        print(title, "-" * 80, sep="\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(requests.script(controller, row.label))
    return 0


def _show_usage(controller: Controller, line: CommandLine, fields: Sequence[SlurmColumn]) -> int:
    """Print the usage of the steps of running jobs."""
    jobs = split_jobs(line.options.get("jobs", ""))
    if not jobs:
        raise InvalidInput("You didn't give me any jobs to stat.", remedy="name them with --jobs")
    names = [*(column.field for column in fields), *_NEEDED]
    matching = {
        "jobs": [job.partition(".")[0] for job in jobs],
        "states": ["RUNNING", "SUSPENDED"],
        "steps": True,
    }
    listing = fetch(controller, "accounting", AccountingLine, dict.fromkeys(names), matching)
    running = [_shown(row) for row in listing.rows if row.step and row.state in _LIVE]
    rows = list[Any]()
    for name in jobs:
        steps = _steps_of(name, running, shows_all="allsteps" in line.options)
        if not steps:
            print(f"sstat: error: no steps running for job {name}", file=sys.stderr)
        rows += steps
    if "pids" in names:
        rows = [row._replace(pids=_processes(controller, row)) for row in rows]
    print_fields(line, rows, fields, _notation(line))
    return 0


def _steps_of(name: str, running: Sequence[Any], *, shows_all: bool) -> list[Any]:
    """Return the running step of a name; of a job all steps, or its first one."""
    job, _, step = name.partition(".")
    steps = [row for row in running if job in (row.label, row.label.partition("_")[0])]
    if step:
        return [row for row in steps if row.step == step]
    if shows_all:
        return steps
    # Slurm takes the batch script of a job that has nothing else.
    return ([row for row in steps if row.step != BATCH] or steps)[:1]


def _processes(controller: Controller, row: Any) -> str:
    """Return the process ids of a step."""
    processes = controller.request("processes", job=row.label)["processes"]
    return ",".join(str(one["pid"]) for one in processes if one["step"] == row.step)
