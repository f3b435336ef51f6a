"""scontrol: change jobs, nodes, partitions and reservations, and control the controller."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.report.slurm.job_rows import JobLine
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.requests import JobResult
from fairbank.wlm.commands.arguments import CommandOption, read_command_line, split_jobs
from fairbank.wlm.commands.scontrol_words import entity, pairs, read_fields
from fairbank.wlm.commands.slurm_errors import print_failure, slurm_sentence
from fairbank.wlm.commands.tables.rows import fetch

OPTIONS = (
    CommandOption("all", "a", "", "no effect: nothing is hidden", "SCONTROL_ALL"),
    CommandOption("details", "d", "", "show more details"),
    CommandOption("json", "", "[VERSION]", "show it as JSON"),
    CommandOption("oneliner", "o", "", "show each record on one line"),
)
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 0.05, 2.0
_NOT_STARTED = frozenset({"PENDING", "CONFIGURING"})
_NAME_OF_JOBS = frozenset({"jobname", "name"})
"""Fields that name jobs by their name."""


class _Command(NamedTuple):
    """Command of scontrol: what carries it out, its operands, and how many it takes."""

    run: Callable[[Controller, Sequence[str]], int]
    operands: str = ""
    least: int = 0
    most: int | None = None


def run(name: str, words: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    usage = "[OPTIONS] COMMAND [OPERANDS...]\n\nCommands:\n" + "\n".join(
        f"  {keyword} {command.operands}".rstrip() for keyword, command in COMMANDS.items()
    )
    words = ["--help" if word == "help" and at == 0 else word for at, word in enumerate(words)]
    line = read_command_line(name, f"{usage}\n  show ENTITY [NAME]", OPTIONS, words)
    if line is None:
        return 0
    if not line.words:
        return _fail(f"{name}: error: no command (try {name} --help)")
    keyword, operands = _keyword(line.words[0]), line.words[1:]
    if keyword == "show":
        code: int = import_module(_SHOW).show(line, operands)
        return code
    if keyword in REFUSED:
        return _fail(f"{name}: error: {keyword} is not supported: {REFUSED[keyword]}")
    if keyword is None:
        return _fail(f"invalid keyword: {line.words[0]}")
    command = COMMANDS[keyword]
    if len(operands) < command.least:
        return _fail(f"too few arguments for keyword:{keyword}")
    if command.most is not None and len(operands) > command.most:
        return _fail(f"too many arguments for keyword:{keyword}")
    with Controller() as controller:
        return command.run(controller, operands)


def _keyword(word: str) -> str | None:
    """Return the command that a word names; it may be shortened as long as it is one."""
    known = [*COMMANDS, *REFUSED, "show"]
    if word.lower() in known:
        return word.lower()
    matching = [name for name in known if name.startswith(word.lower())]
    return matching[0] if len(matching) == 1 else None


def _fail(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


def _fail_with(before: str, error: FairbankError) -> int:
    print_failure("scontrol", error, before)
    return 1


def _change(controller: Controller, request: str, jobs: Sequence[str], **fields: object) -> int:
    """Make a request about jobs, print what failed, and return the exit code."""
    return _report(requests.change_jobs(controller, request, jobs, **fields))


def _report(results: Sequence[JobResult]) -> int:
    """Print what failed, and return the exit code."""
    failed = [(job, error) for job, error in results if error is not None]
    for job, error in failed:
        print_failure("scontrol", error, "", f" for job {job}")
    return 1 if failed else 0


# ------------------------------------------------------------------ jobs


def _on_jobs(request: str) -> Callable[[Controller, Sequence[str]], int]:
    """Return a command that makes a request for the jobs that it names."""
    return lambda controller, words: _change(controller, request, _jobs(words))


def _on_named_jobs(request: str) -> Callable[[Controller, Sequence[str]], int]:
    """Return a command as `_on_jobs` does; one word may be `JobName=NAME` instead of jobs."""

    def command(controller: Controller, words: Sequence[str]) -> int:
        key, equals, name = words[0].partition("=")
        if not equals or key.lower() not in _NAME_OF_JOBS:
            return _change(controller, request, _jobs(words))
        # As with Slurm, it is no error that no job has this name.
        jobs = _jobs_with_name(controller, name)
        return _change(controller, request, jobs) if jobs else 0

    return command


def _jobs_with_name(controller: Controller, name: str) -> list[str]:
    """Return the jobs with a name that wait or run: for root all, else those of the user."""
    own = {} if os.geteuid() == 0 else {"users": [str(os.geteuid())]}
    matching = {"names": [name], "states": ["PENDING", "RUNNING", "SUSPENDED"], **own}
    return [row.label for row in fetch(controller, "jobs", JobLine, ["label"], matching).rows]


def _jobs(words: Sequence[str]) -> list[str]:
    """Return the jobs of `7 8_[1-3,5],9` or `JobId=7`."""
    texts = [word.partition("=")[2] if entity(word) == "job" else word for word in words]
    if not (jobs := [job for text in texts for job in split_jobs(text)]):
        raise InvalidInput("no job is named", field="job", remedy="write 7, 7_4 or 7_[1-3,8]")
    return jobs


def _requeue_held(controller: Controller, words: Sequence[str]) -> int:
    """Requeue and hold jobs; with State=SpecialExit first, in that state."""
    first, *rest = words
    name, is_state, state = first.lower().partition("=")
    if not (is_state and "state".startswith(name)):
        return _change(controller, "requeue", _jobs(words), held=True)
    if state not in ("se", "specialexit"):
        return _fail(f"Invalid state specification {state}")
    return _change(controller, "requeue", _jobs(rest), held=True, special=True)


def _notify(controller: Controller, words: Sequence[str]) -> int:
    return _change(controller, "notify", _jobs(words[:1]), text=" ".join(words[1:]))


def _wait_job(controller: Controller, words: Sequence[str]) -> int:
    """Wait until a job runs or has ended. Return 1 in the second case."""
    change, seconds = None, _FIRST_POLL_SECONDS
    matching = {"jobs": _jobs(words)}
    while True:
        columns = ["state", "flag"]
        answer = requests.rows(controller, "jobs", columns, matching=matching, change=change)
        change = answer.change
        if answer.rows is not None:
            states = {state for line in answer.rows for state in line}
            if not states:
                return _fail(f"Invalid job id specified for job {words[0]}")
            if not states & _NOT_STARTED:
                return 0 if states & {"RUNNING", "SUSPENDED"} else 1
        time.sleep(seconds)
        seconds = min(2 * seconds, _LAST_POLL_SECONDS)


def _write(controller: Controller, words: Sequence[str]) -> int:
    """Write the script of a job to a file, by default slurm-JOB.sh, or to standard output."""
    what, job, *path = words
    if not ("batch_script".startswith(what.lower()) and what):
        return _fail(f"invalid write argument: {what}")
    script = requests.script(controller, job)
    target = path[0] if path else f"slurm-{job}.sh"
    if target == "-":
        sys.stdout.buffer.write(script)
        return 0
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
        with open(descriptor, "wb") as file:
            file.write(script)
    except OSError as error:
        return _fail(f"failed to open file `{target}`: {error.strerror}")
    print(f"batch script for job {job} written to {target}")
    return 0


# ------------------------------------------------------------------ entities


def _update(controller: Controller, words: Sequence[str]) -> int:
    """Change what the first of the keys names that can: job, reservation, node, partition.

    Without any, the jobs with the last name that is given are changed.
    """
    words = [*pairs(words)]
    read_fields(words)
    kinds = {entity(word): word for word in reversed(words)}
    for kind in ("job", "reservation", "node", "partition"):
        if kind not in kinds:
            continue
        name = kinds[kind].partition("=")[2]
        fields = read_fields([word for word in words if word != kinds[kind]])
        if kind == "job":
            return _update_jobs(controller, _jobs([name]), fields)
        try:
            if kind == "node":
                controller.request("update-node", nodes=name, fields=fields)
            else:
                controller.request("update", entity=kind, fields={_NAME_KEYS[kind]: name, **fields})
        except FairbankError as error:
            return _fail_with("slurm_update error: ", error)
        return 0
    named = [word for word in words if word.partition("=")[0].lower() in _NAME_OF_JOBS]
    if len(words) > 1 and named:
        name = named[-1].partition("=")[2]
        if not (jobs := _jobs_with_name(controller, name)):
            return _fail(f"scontrol: error: No jobs with name '{name}'")
        return _update_jobs(
            controller, jobs, read_fields([word for word in words if word not in named])
        )
    return _fail(
        "No valid entity in update command\nInput line must include JobId, NodeName, "
        "PartitionName or ReservationName"
    )


def _update_jobs(controller: Controller, jobs: Sequence[str], fields: dict[str, str]) -> int:
    """Change jobs, and print Slurm's line about the first value that cannot be read."""
    results = requests.change_jobs(controller, "update-job", jobs, fields=fields)
    for _, error in results:
        name = error.field if isinstance(error, InvalidInput) else None
        texts = [
            text for key, text in fields.items() if name and name.lower().startswith(key.lower())
        ]
        if error is None or not texts or slurm_sentence(error) is not None:
            continue
        remedy = f" ({error.remedy})" if error.remedy else ""
        print(f"scontrol: {error.message}{remedy}", file=sys.stderr)
        # Slurm names the value, but not of these two.
        value = "" if name in ("TimeLimit", "TimeMin") else f": {texts[0]}"
        return _fail(f"scontrol: error: Invalid {name} value{value}")
    return _report(results)


def _create(controller: Controller, words: Sequence[str]) -> int:
    """Create a partition or a reservation: `create reservation ...` or `create Partition=...`."""
    kind, fields = _kind_of_words(words)
    try:
        name = controller.request("create", entity=kind, fields=fields)["name"]
    except FairbankError as error:
        return _fail_with(f"Error creating the {kind}: ", error)
    if kind == "reservation":
        print(f"Reservation created: {name}")
    return 0


def _delete(controller: Controller, words: Sequence[str]) -> int:
    kind, fields = _kind_of_words(words)
    try:
        controller.request("delete", entity=kind, fields=fields)
    except FairbankError as error:
        return _fail_with(f"Error deleting the {kind}: ", error)
    return 0


def _kind_of_words(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return `partition` or `reservation`, and the fields with its name under its full key."""
    first, *rest = words
    kind = entity(first if "=" in first else f"{first}=")
    name = first.partition("=")[2]
    if kind == "partition" and any(entity(word) == "reservation" for word in rest):
        kind, rest, name = "reservation", list(words), ""
    if kind not in _NAME_KEYS:
        raise InvalidInput(
            f"{first[:40]} is neither a partition nor a reservation",
            remedy="begin with PartitionName=NAME or ReservationName=NAME",
        )
    fields = {_NAME_KEYS[kind]: name} if name else {}
    return kind, fields | read_fields(rest)


# ------------------------------------------------------------------ controller


def _ping(controller: Controller, words: Sequence[str]) -> int:
    try:
        answer = controller.request("ping")
    except Unavailable as error:
        print(f"Slurmctld(primary) at {os.uname().nodename} is DOWN")
        return _fail(f"scontrol: {error.message}")
    print(f"Slurmctld(primary) at {answer['host']} is UP")
    return 0


def _list_processes(controller: Controller, words: Sequence[str]) -> int:
    """Print the processes of a job or a step, or of all running jobs."""
    named, _, only = words[0].partition(".") if words else ("", "", "")
    jobs = [named] if named else []
    if not jobs:
        running = {"states": ["RUNNING", "SUSPENDED"]}
        jobs = [row.label for row in fetch(controller, "jobs", JobLine, ["label"], running).rows]
    print(f"{'PID':<8} {'JOBID':<8} {'STEPID':<8} {'LOCALID':<7} {'GLOBALID':<8}")
    for name in jobs:
        for one in controller.request("processes", job=name)["processes"]:
            if only in ("", one["step"]):
                local, rank = ("-" if one[key] is None else one[key] for key in ("local", "rank"))
                print(f"{one['pid']:<8} {one['job']:<8} {one['step']:<8} {local:<7} {rank:<8}")
    return 0


def _process_info(controller: Controller, words: Sequence[str]) -> int:
    """Print the job of a process, and when it ends."""
    if not (words[0].isascii() and words[0].isdigit()):
        return _fail(f"Invalid process id: {words[0]}")
    answer = controller.request("job-of-process", pid=int(words[0]))
    job, ends = answer["job"], answer["ends"]
    if job is None:
        return _fail(f"process {words[0]} belongs to no job")
    if ends is None:
        print(f"Slurm job id {job} has no time limit")
        return 0
    print(f"Slurm job id {job} ends at {time.ctime(ends)}")
    print(f"slurm_get_rem_time is {max(int(ends - time.time()), 0)}")
    return 0


def _reconfigure(controller: Controller, words: Sequence[str]) -> int:
    try:
        for note in controller.request("reconfigure")["notes"]:
            print(note)
    except FairbankError as error:
        return _fail_with("slurm_reconfigure error: ", error)
    return 0


def _set_debug(controller: Controller, words: Sequence[str]) -> int:
    level, *rest = words
    name, _, nodes = rest[0].partition("=") if rest else ("nodes", "", "")
    if name.lower() != "nodes" or bool(rest) is not bool(nodes):
        return _fail(f"invalid setdebug argument: {rest[0]}")
    controller.request("set-debug", level=level, nodes=nodes)
    return 0


def _shutdown(controller: Controller, words: Sequence[str]) -> int:
    controller.request("shutdown")
    return 0


_SHOW = "fairbank.wlm.commands.tables.show"
_NAME_KEYS = {"partition": "PartitionName", "reservation": "ReservationName"}
COMMANDS = {
    "hold": _Command(_on_named_jobs("hold"), "JOBS|JobName=NAME", 1),
    "uhold": _Command(_on_named_jobs("uhold"), "JOBS|JobName=NAME", 1),
    "release": _Command(_on_named_jobs("release"), "JOBS|JobName=NAME", 1),
    "requeue": _Command(_on_jobs("requeue"), "JOBS", 1),
    "suspend": _Command(_on_jobs("suspend"), "JOBS", 1),
    "resume": _Command(_on_jobs("resume"), "JOBS", 1),
    "requeuehold": _Command(_requeue_held, "[State=SpecialExit] JOBS", 1),
    "top": _Command(_on_jobs("top"), "JOBS", 1),
    "notify": _Command(_notify, "JOB TEXT", 2),
    "wait_job": _Command(_wait_job, "JOB", 1, 1),
    "write": _Command(_write, "batch_script JOB [FILE]", 2, 3),
    "update": _Command(_update, "NAME=VALUE...", 1),
    "create": _Command(_create, "partition|reservation NAME=VALUE...", 1),
    "delete": _Command(_delete, "PartitionName=NAME|ReservationName=NAME", 1, 2),
    "listpids": _Command(_list_processes, "[JOB[.STEP]]", 0, 1),
    "pidinfo": _Command(_process_info, "PID", 1, 1),
    "ping": _Command(_ping, "", 0, 0),
    "reconfigure": _Command(_reconfigure, "", 0, 0),
    "setdebug": _Command(_set_debug, "LEVEL [nodes=NODES]", 1, 2),
    "shutdown": _Command(_shutdown, "", 0, 1),
}
REFUSED = {"takeover": "there is one controller"}
