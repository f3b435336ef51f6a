"""scontrol show, and sdiag."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import time as clock
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import compress, expand
from fairbank.report.slurm import json_forms, scontrol, steps
from fairbank.report.slurm.job_rows import JobLine, JobShare
from fairbank.report.slurm.machine_rows import LicenseLine, NodeLine, PartitionLine, ReservationLine
from fairbank.report.slurm.notation import NOT_APPLICABLE, time
from fairbank.report.slurm.sdiag import request_text
from fairbank.report.slurm.steps import StepLine
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import (
    CommandLine,
    CommandOption,
    read_command_line,
    split_jobs,
)
from fairbank.wlm.commands.scontrol_words import entity
from fairbank.wlm.commands.tables.assoc_mgr import show_limits
from fairbank.wlm.commands.tables.rows import fetch, notation


class _Entity(NamedTuple):
    """Kind of thing that scontrol shows: its rows, its text, and its sentences."""

    line: type
    template: Sequence[str]
    nothing: str
    unknown: str
    json: Callable[..., str]


ENTITIES: Mapping[str, _Entity] = {
    "job": _Entity(
        JobLine,
        scontrol.JOB,
        scontrol.NO_JOBS,
        "slurm_load_jobs error: Invalid job id specified",
        json_forms.jobs,
    ),
    "node": _Entity(
        NodeLine, scontrol.NODE, "No nodes in the system", "Node {} not found", json_forms.nodes
    ),
    "partition": _Entity(
        PartitionLine,
        scontrol.PARTITION,
        "No partitions in the system",
        "Partition {} not found",
        json_forms.partitions,
    ),
    "reservation": _Entity(
        ReservationLine,
        scontrol.RESERVATION,
        scontrol.NO_RESERVATIONS,
        "Reservation {} not found",
        json_forms.reservations,
    ),
}
"""By their names, of which the plurals are those of the rows and of the lists of a filter."""


def show(line: CommandLine, words: Sequence[str]) -> int:
    """Show the entity that the words after `show` name, and return the exit code."""
    if not words:
        print("too few arguments for keyword:show", file=sys.stderr)
        return 1
    kind, has_name, name = words[0].partition("=")
    names = [name, *words[1:]] if has_name else list(words[1:])
    if kind.lower() == "assoc_mgr":
        return show_limits(line, names)
    if len(names) > 1:
        print(f"too many arguments for keyword:show:{kind}", file=sys.stderr)
        return 1
    which = names[0] if names else ""
    # By the fewest characters of a word, which others may begin like.
    simple: Sequence[tuple[str, int, Callable[[str], int]]] = (
        ("config", 1, _show_config),
        ("daemons", 1, _show_daemons),
        ("hostlistsorted", len("hostlists"), partial(_show_hostlist, is_sorted=True)),
        ("hostlist", 5, _show_hostlist),
        ("hostnames", 5, _show_hostnames),
        ("licenses", 1, partial(_show_licenses, line)),
        ("steps", 1, partial(_show_steps, line)),
    )
    word = kind.lower()
    for full, shortest, run_simple in simple:
        if full.startswith(word) and len(word) >= shortest:
            return run_simple(which)
    for full in ENTITIES:
        if word and f"{full}s".startswith(word):
            return _show_rows(line, full, which)
    if (named := entity(f"{word}=")) is not None:
        return _show_rows(line, named, which)
    print(f"invalid entity:{kind} for keyword:show", file=sys.stderr)
    return 1


def _show_rows(line: CommandLine, kind: str, which: str) -> int:
    options, entity = line.options, ENTITIES[kind]
    has_details, is_json = "details" in options, "json" in options
    wanted = list(getattr(entity.line, "_fields", ()) if is_json else [])
    wanted += scontrol.fields_in(entity.template)
    wanted += ["shares"] if kind == "job" and has_details else []
    names = expand(which) if kind == "node" else split_jobs(which)
    with Controller() as controller:
        listing = fetch(controller, f"{kind}s", entity.line, wanted, {f"{kind}s": names})
    if is_json:
        print(entity.json(listing.rows, listing.now))
        return 0
    _write(line, map(_with_shares, listing.rows), entity.template)
    if not names:
        if not listing.rows:
            print(entity.nothing)
        return 0
    if kind == "job":
        missing = [] if listing.rows else names[:1]
    else:
        missing = [name for name in names if name not in {row.name for row in listing.rows}]
    for name in missing:
        print(entity.unknown.format(name), file=sys.stderr)
    return 1 if missing else 0


def _write(line: CommandLine, rows: Iterable[Any], template: Sequence[str]) -> None:
    options, writes = line.options, notation()
    for row in rows:
        text = scontrol.show(
            row,
            template,
            writes,
            is_one_line="oneliner" in options,
            has_details="details" in options,
        )
        sys.stdout.write(text)


def _show_steps(line: CommandLine, which: str) -> int:
    """Show the steps that run: all, those of a job, or one."""
    if "json" in line.options:
        raise InvalidInput("steps have no JSON form", remedy="leave out --json")
    job, _, step = which.partition(".")
    wanted = [*scontrol.fields_in(scontrol.STEP), "step"]
    with Controller() as controller:
        if job and not fetch(controller, "jobs", JobLine, ["label"], {"jobs": [job]}).rows:
            print("slurm_get_job_steps error: Invalid job id specified", file=sys.stderr)
            return 1
        rows = fetch(controller, "steps", StepLine, wanted, {"jobs": [job] if job else []}).rows
    rows = [row for row in rows if step in ("", row.step)]
    _write(line, rows, scontrol.STEP)
    if not rows:
        print(f"Job step {which} not found" if which else steps.NO_STEPS)
    return 1 if which and not rows else 0


def _with_shares(row: Any) -> Any:
    if not getattr(row, "shares", None):
        return row
    return row._replace(shares=tuple(JobShare(*share) for share in row.shares))


def _show_licenses(line: CommandLine, which: str) -> int:
    with Controller() as controller:
        listing = fetch(
            controller, "licenses", LicenseLine, [*LicenseLine._fields, "free"],
            {"licenses": [which] if which else []},
        )  # fmt: skip
    space = " " if "oneliner" in line.options else "\n    "
    for row in listing.rows:
        print(
            f"LicenseName={row.name}{space}Total={row.total} Used={row.used} Free={row.free}"
            f" Reserved={row.reserved} Remote=no"
        )
    if which and not listing.rows:
        print(f"License name {which!r} not found", file=sys.stderr)
        return 1
    if not listing.rows:
        print(scontrol.NO_LICENSES)
    return 0


def _show_config(which: str) -> int:
    with Controller() as controller:
        state = controller.request("ping")
        settings = requests.settings(controller)
    if which:
        settings = {name: settings[name] for name in settings if name.lower() == which.lower()}
    if not settings:
        print(f"Setting {which} not found", file=sys.stderr)
        return 1
    print(f"Configuration data as of {time(int(clock()), notation())}")
    for name, value in settings.items():
        print(f"{name:<23} = {value}")
    print(f"\nSlurmctld(primary) at {state['host']} is UP")
    return 0


def _show_daemons(which: str) -> int:
    print("slurmctld slurmd ")
    return 0


def _own_nodes() -> str:
    """Return the nodes of the job in which the command runs."""
    return os.environ.get("SLURM_NODELIST") or os.environ.get("SLURM_JOB_NODELIST", "")


def _show_hostnames(which: str) -> int:
    for name in expand(which or _own_nodes()):
        print(name)
    return 0


def _show_hostlist(which: str, *, is_sorted: bool = False) -> int:
    text = which or _own_nodes()
    if text.startswith("/"):
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"cannot read {text[:80]!r}: {error}") from error
    names = expand(text)
    print(compress(sorted(names) if is_sorted else names))
    return 0


# --- sdiag ---

SDIAG_OPTIONS = (CommandOption("all", "a", "", "show everything, which is the default"),)
_LINE = "*" * 55
SDIAG = """\
Server thread count:  {server_thread_count}
RPC queue enabled:    0
Agent queue size:     {agent_queue_size}
Agent count:          {agent_count}
Agent thread count:   {agent_thread_count}
DBD Agent queue size: {dbd_agent_queue_size}

Jobs submitted: {jobs_submitted}
Jobs started:   {jobs_started}
Jobs completed: {jobs_completed}
Jobs canceled:  {jobs_canceled}
Jobs failed:    {jobs_failed}

Job states ts:  {job_states_ts}
Jobs pending:   {jobs_pending}
Jobs running:   {jobs_running}

Main schedule statistics (microseconds):
\tLast cycle:   {schedule_cycle_last}
\tMax cycle:    {schedule_cycle_max}
\tTotal cycles: {schedule_cycle_counter}
\tMean cycle:   {schedule_cycle_mean}
\tMean depth cycle:  {schedule_cycle_mean_depth}
\tCycles per minute: {schedule_cycle_per_minute}
\tLast queue length: {schedule_queue_length}

Backfilling stats
\tTotal backfilled jobs (since last slurm start): {bf_backfilled_jobs}
\tTotal backfilled jobs (since last stats cycle start): {bf_last_backfilled_jobs}
\tTotal backfilled heterogeneous job components: 0
\tTotal cycles: {bf_cycle_counter}
\tLast cycle when: {bf_when_last_cycle}
\tLast cycle: {bf_cycle_last}
\tMax cycle:  {bf_cycle_max}
\tMean cycle: {bf_cycle_mean}
\tLast depth cycle: {bf_last_depth}
\tDepth Mean: {bf_depth_mean}
\tLast queue length: {bf_queue_len}
\tQueue length mean: {bf_queue_len_mean}
\tLast table size: {bf_table_size}
"""


class _Figures(dict[str, Any]):
    """Figures by name, with a word for what the controller does not count."""

    def __missing__(self, name: str) -> str:
        return NOT_APPLICABLE


def run(name: str, words: Sequence[str]) -> int:
    """Print the figures of the controller, as sdiag."""
    if read_command_line(name, "[OPTIONS]", SDIAG_OPTIONS, words) is None:
        return 0
    with Controller() as controller:
        figures = _Figures(controller.request("statistics"))
    for name in ("req_time", "req_time_start", "job_states_ts", "bf_when_last_cycle"):
        figures[name] = _at(figures.get(name))
    print(_LINE)
    print(f"sdiag output at {figures['req_time']}")
    print(f"Data since      {figures['req_time_start']}")
    print(_LINE)
    print(SDIAG.format_map(figures) + request_text(figures), end="")
    return 0


def _at(seconds: int | None) -> str:
    if seconds is None:
        return NOT_APPLICABLE
    form = notation()._replace(time_format="%a %b %d %H:%M:%S %Y")
    return f"{time(seconds, form)} ({seconds})"
