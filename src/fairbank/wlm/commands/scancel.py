"""scancel: cancel jobs, or send them a signal."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence

from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.hostlist import expand
from fairbank.report.slurm.job_rows import JobLine
from fairbank.report.slurm.steps import StepLine
from fairbank.unix_users import find_uid, user_name
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.arguments import CommandLine, CommandOption, read_command_line
from fairbank.wlm.commands.slurm_errors import print_failure
from fairbank.wlm.commands.tables.rows import fetch

_CODES = {Forbidden: 210, Conflict: 228}
"""Exit codes: of the numbers of Slurm's errors, 2002 and 2020, the shell sees one byte."""
_INVALID_ID = 225
"""Exit code for a step that does not run, from Slurm's error 2017."""
_STATES = {"PENDING", "RUNNING", "SUSPENDED"}
_SHORT_STATES = {"PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED"}
OPTIONS = (
    CommandOption("account", "A", "NAME", "jobs of this account", "SCANCEL_ACCOUNT"),
    CommandOption("batch", "b", "", "signal only the batch script", "SCANCEL_BATCH"),
    CommandOption("full", "f", "", "signal the batch script and all steps", "SCANCEL_FULL"),
    CommandOption("interactive", "i", "", "ask for each job", "SCANCEL_INTERACTIVE"),
    CommandOption("jobname", "", "NAME", "as --name"),
    CommandOption("me", "", "", "your own jobs"),
    CommandOption("name", "n", "NAME", "jobs with this name", "SCANCEL_NAME"),
    CommandOption("nodelist", "w", "NODES", "jobs on these nodes"),
    CommandOption("partition", "p", "NAME", "jobs in this partition", "SCANCEL_PARTITION"),
    CommandOption("qos", "q", "NAME", "jobs with this QOS", "SCANCEL_QOS"),
    CommandOption("quiet", "Q", "", "print no errors"),
    CommandOption("reservation", "R", "NAME", "jobs of this reservation"),
    CommandOption("signal", "s", "SIGNAL", "send the steps this signal instead of cancelling"),
    CommandOption("state", "t", "STATE", "jobs that are PENDING or RUNNING", "SCANCEL_STATE"),
    CommandOption("user", "u", "NAME", "jobs of this user", "SCANCEL_USER"),
    CommandOption("verbose", "v", "", "name each job", "SCANCEL_VERBOSE"),
)
_SENDS_SIGNAL = {"signal", "batch"}
_FILTERS = {
    "account": "accounts", "jobname": "names", "name": "names", "partition": "partitions",
    "qos": "qos", "reservation": "reservations", "user": "users",
}  # fmt: skip


def run(name: str, words: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    line = read_command_line(name, "[OPTIONS] [JOB[.STEP]...]", OPTIONS, words)
    if line is None:
        return 0
    matching = _filter(line)
    steps = [word for word in line.jobs() if "." in word]
    jobs = [word for word in line.jobs() if "." not in word]
    codes = [0]
    if steps:
        with Controller() as controller:
            codes = [_end_step(controller, name, line, step) for step in steps]
        if not jobs:
            return max(codes)
    is_all = not jobs and not matching
    if is_all and not _confirms_all(name):
        return 1
    if is_all or (not jobs and "users" not in matching and os.geteuid() != 0):
        matching["users"] = [user_name(os.geteuid())]
    with Controller() as controller:
        if "interactive" in line.options:
            jobs, matching = _ask(controller, jobs, matching), {}
            if not jobs:
                return 0
        number = _signal(line.options.get("signal", "KILL"))
        results = requests.change_jobs(
            controller,
            "cancel",
            jobs,
            filter=matching,
            signal=None if number == signal.SIGKILL else number,
            batch="batch" in line.options,
            full="full" in line.options,
        )
    return max(*codes, _report(name, line, results))


def _end_step(controller: Controller, name: str, line: CommandLine, step: str) -> int:
    """End a step, or send its tasks a signal. Return the exit code."""
    number = _signal(line.options.get("signal", "KILL"))
    is_end = number == signal.SIGKILL
    before = f"{name}: error: Kill job error on job step id {step}: "
    if not re.fullmatch(r"\d+(_\d+)?\.\d+", step):
        print(f"{name}: error: Invalid job id {step[:40]}", file=sys.stderr)
        return 1
    try:
        job = step.partition(".")[0]
        fields = ["label", "job_id", "step", "name", "partition"]
        rows = fetch(controller, "steps", StepLine, fields, {"jobs": [job]}).rows
        row = next((row for row in rows if step in (row.label, f"{row.job_id}.{row.step}")), None)
        if row is None:
            raise NotFound(f"there is no step {step}", field="job", remedy="squeue -s lists them")
        question = f"Cancel step_id={step} name={row.name} partition={row.partition} [y/n]? "
        if "interactive" in line.options and not _is_yes(question):
            return 0
        if "verbose" in line.options:
            what = "Terminating" if is_end else f"Signal {number:d} to"
            print(f"{name}: {what} step {step}", file=sys.stderr)
        requests.end_step(
            controller, requests.StartedStep(row.job_id, int(row.step), ()), 0 if is_end else number
        )
    except (Conflict, Forbidden, NotFound) as error:
        if "quiet" not in line.options:
            print_failure(name, error, before)
        return _CODES.get(type(error), _INVALID_ID)
    return 0


def _confirms_all(name: str) -> bool:
    """Ask on a terminal whether all own jobs are meant."""
    if not sys.stdin.isatty():
        print(f"{name}: error: No job identification provided", file=sys.stderr)
        return False
    return _is_yes(f"Cancel all jobs of {user_name(os.geteuid())} [y/n]? ")


def _filter(line: CommandLine) -> dict[str, list[str]]:
    """Return what the jobs must have."""
    matching = {
        field: [line.options[option]]
        for option, field in _FILTERS.items()
        if option in line.options
    }
    for name in matching.get("users", ()):
        if not (name.isascii() and name.isdigit()):
            _check_user(name)
    if "me" in line.options:
        matching["users"] = [user_name(os.geteuid())]
    if nodes := line.options.get("nodelist"):
        matching["nodes"] = expand(nodes, field="--nodelist")
    if states := [_SHORT_STATES.get(word.upper(), word.upper()) for word in line.items("state")]:
        for state in states:
            if state not in _STATES:
                raise InvalidInput(
                    f"Invalid job state specified: {state[:40]!a}",
                    field="--state",
                    remedy=f"Valid job states are {', '.join(sorted(_STATES))}",
                )
        matching["states"] = states
    return matching


def _check_user(name: str) -> None:
    """Raise InvalidInput if this host has no user of this name."""
    if find_uid(name) is None:
        raise InvalidInput(
            f"Invalid user name: {name[:40]}", field="user", remedy="see getent passwd"
        )


def _signal(text: str) -> int:
    """Return the number of a signal."""
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= signal.SIGRTMAX:
        return int(text)
    try:
        return signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"]
    except KeyError:
        raise InvalidInput(
            f"Unknown job signal: {text[:40]!a}",
            field="--signal",
            remedy="a name such as USR1 or TERM, or a number",
        ) from None


def _ask(
    controller: Controller, jobs: Sequence[str], matching: Mapping[str, list[str]]
) -> list[str]:
    """Return those jobs that the user wants to cancel."""
    open_jobs = {"states": ["PENDING", "RUNNING", "SUSPENDED"], **matching, "jobs": jobs}
    rows = fetch(controller, "jobs", JobLine, ["label", "name", "partition"], open_jobs).rows
    return [
        row.label
        for row in rows
        if _is_yes(f"Cancel job_id={row.label} name={row.name} partition={row.partition} [y/n]? ")
    ]


def _is_yes(question: str) -> bool:
    print(question, end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(name: str, line: CommandLine, results: Sequence[requests.JobResult]) -> int:
    """Print what failed, and return the exit code."""
    code = 0
    is_quiet, is_verbose = "quiet" in line.options, "verbose" in line.options
    for job, error in results:
        if is_verbose and (error is None or "signal" not in line.options):
            what = (
                f"Signal {line.options['signal']} to" if "signal" in line.options else "Terminating"
            )
            print(f"{name}: {what} job {job}", file=sys.stderr)
        if error is None:
            continue
        # A job that is not known has perhaps ended: there is nothing to cancel.
        is_over = _is_over(error) and not _SENDS_SIGNAL & line.options.keys()
        if not is_over:
            code = max(code, 1 if _is_over(error) else _CODES.get(type(error), 1))
        if not is_quiet and (is_verbose or not is_over):
            print_failure(name, error, f"{name}: error: Kill job error on job id {job}: ")
    return code


def _is_over(error: FairbankError) -> bool:
    """Return True if the job has ended, or is not known."""
    return isinstance(error, NotFound) or error.field in ("ended", "completing")
