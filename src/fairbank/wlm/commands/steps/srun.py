"""srun: run a step of a job, or with --batch submit one."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.core.submission.file_patterns import (
    Symbols,
    expand_pattern,
    job_symbols,
    task_symbols,
)
from fairbank.core.submission.gpus import OPTIONS as GPU_OPTIONS
from fairbank.core.submission.resources import requested_tasks, step_nodes, tasks_per_node_of_step
from fairbank.core.submission.support import check_supported
from fairbank.core.submission.values import RESOURCE_LIMITS
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.step_stream import StepDaemonLost
from fairbank.wlm.commands import job_submission as submission
from fairbank.wlm.commands.job_environment import job_environment
from fairbank.wlm.commands.job_options import SubmissionWords, merged_options, variable_options
from fairbank.wlm.commands.slurm_errors import print_error, print_failure
from fairbank.wlm.commands.steps.allocation import InteractiveJob, Revoked, StepWith, tell_end
from fairbank.wlm.commands.steps.background import InBackground
from fairbank.wlm.commands.steps.ending_signals import (
    ENDING,
    handled_signals,
    held_signals,
    interrupt,
)
from fairbank.wlm.commands.steps.step_output import STANDARD, StepOutput
from fairbank.wlm.commands.steps.step_run import StepOptions, StepRun
from fairbank.wlm.commands.steps.terminal import RawTerminal, terminal_size
from fairbank.wlm.protocol.frames import ERRORS, OUTPUT

BUSY_SECONDS = 0.1, 5.0
"""First and longest pause between two attempts to create a step that must wait."""
_OF_TASK = re.compile(r"%\d*[tnN]")
_OWN_FILES = ("output", "error", "input")
_OWN_SENTENCES = ("nodes", "tasks-of-hosts")
"""Fields of errors whose message is a sentence of srun, not of slurmctld."""
_NAMES = {OUTPUT: "output", ERRORS: "error"}
_STREAMS = {OUTPUT: "stdout", ERRORS: "stderr"}


def run_step(line: SubmissionWords) -> int:
    """Run the step of a command line within its job, and return the exit code."""
    if line.options.get("mpi") == "list":
        print("MPI plugin types are...\n\tnone")
        return 0
    if line.script is None:
        raise InvalidInput("No command given to execute.", field="program")
    variables = variable_options("srun", os.environ)
    if "jobid" in variables:
        variables.pop("job-name", None)  # that of the job, which is not meant for its steps
    if line.options.keys() & set(GPU_OPTIONS):  # in place of those of the job
        variables = {name: text for name, text in variables.items() if name not in GPU_OPTIONS}
    if {**variables, **line.options}.get("distribution", "").lower() == "arbitrary":
        variables.pop("ntasks", None)  # the list of nodes says how many
    options = merged_options([variables, line.options])
    check_supported(options)
    submission.read_host_files(options)
    values = submission.checked_values("srun", options)
    programs: Mapping[int, Sequence[str]] = {}
    if "multi-prog" in options:
        programs = _programs(line.script, values)
        if requested_tasks(values) is None:  # those of the job and of the step
            options["ntasks"] = str(len(programs))
            line = line._replace(options={**line.options, "ntasks": options["ntasks"]})
    files = _take_files(options)
    step_with = partial(
        _requested_step, line, programs, options, values, files["input"], os.urandom(8).hex()
    )
    with Controller() as controller, handled_signals(ENDING, interrupt):
        if "jobid" in values:
            submission.print_warnings("srun", options, values)
            if "quiet" not in options:
                _print_ignored_count(values)
            return _run(controller, files, step_with, options, values)
        job, code = InteractiveJob(controller, "srun"), 1
        # A file that is missing starts no task, so it is opened before the step is created; what
        # --export names may be a variable of the job.
        has_all = options.get("export", "ALL").upper() == "ALL"
        early = step_with if has_all and not files["input"] else None
        try:
            os.environ.update(job.allocate(line, early, has_command=False))
            own = {**values, "jobid": job.number}
            code = _run(controller, files, step_with, options, own, job)
        except Revoked:
            return 1
        except InBackground:
            job.number = 0  # the other process ends it
            raise
        finally:
            job.complete(code)
        return code


def _print_ignored_count(values: Mapping[str, Any]) -> None:
    """Print that the numbers of tasks and nodes contradict --ntasks-per-node."""
    count, nodes = values.get("ntasks-per-node"), step_nodes(values).least
    if count is not None and tasks_per_node_of_step(values) is None:
        print(
            f"srun: warning: can't honor --ntasks-per-node set to {count} which doesn't match the"
            f" requested tasks {values['ntasks']} with the maximum number of requested nodes"
            f" {nodes}. Ignoring --ntasks-per-node.",
            file=sys.stderr,
        )


def _programs(path: str, values: Mapping[str, Any]) -> Mapping[int, Sequence[str]]:
    """Return the programs of single ranks (--multi-prog).

    Without a number of tasks, their highest rank decides; there is at least one on each node.
    """
    from fairbank.wlm.commands.steps.multi_prog import read_programs

    tasks, per_node = requested_tasks(values), tasks_per_node_of_step(values)
    implied = step_nodes(values).least * (per_node or 1)
    return read_programs(path, tasks or implied, is_fixed=bool(tasks or per_node))


def _take_files(options: dict[str, str]) -> dict[str, str]:
    """Return the options that name files. Only those whose files the tasks open are left."""
    files = {name: options.pop(name, "") for name in _OWN_FILES}
    for name in _NAMES.values():
        if files[name].lower() == "none":
            options[name] = os.devnull
        elif _OF_TASK.search(files[name]):
            options[name] = files[name]
    return files


def _run(
    controller: Controller,
    files: dict[str, str],
    step_with: StepWith,
    options: Mapping[str, str],
    values: Mapping[str, Any],
    job: InteractiveJob | None = None,
) -> int:
    """Run a step. `files` are those of the command line, `job` is that which srun has submitted."""
    # A file that is missing starts no task, unless its name depends on the step.
    is_known = not ("%" in files["input"] or files["input"].isdecimal())
    opens_files = bool(_input_of_tasks(files["input"]))  # the tasks do
    stdin = _input(files["input"]) if is_known and not opens_files else None
    created = [] if job is None or job.created is None else [job.created]
    try:
        if not created:
            step = step_with({})._replace(repeated=job is not None and job.has_requested)
            if not _is_created(controller, step, options, values, created):
                return 1
        started, symbols = created[0], _symbols(created[0])
        ranks = {name: _rank(text, started) for name, text in files.items()}
        shown = {OUTPUT: ranks["output"], ERRORS: ranks["error" if files["error"] else "output"]}
        only = {kind: rank for kind, rank in shown.items() if rank is not None}
        files |= {name: "all" for name, rank in ranks.items() if rank is not None}
        descriptors = _descriptors(files, options, symbols)
        if not (is_known or opens_files):
            stdin = _input(expand_pattern(files["input"], symbols, field="--input"))
        code = _follow(controller, started, descriptors, stdin, options, values, only)
    except (KeyboardInterrupt, FairbankError, OSError) as error:
        if created:
            lost = error.node if isinstance(error, StepDaemonLost) else ""
            end = partial(requests.end_step, controller, created[0], lost_node=lost)
            tell_end("srun", str(created[0]), end)
            if job is not None and lost:  # its node may say soon what happened
                job.step = created[0].step
        raise
    if job is not None:
        job.step = started.step
    return code


def _follow(
    controller: Controller,
    started: requests.StartedStep,
    descriptors: Mapping[int, int],
    stdin: int | None,
    options: Mapping[str, str],
    values: Mapping[str, Any],
    only: Mapping[int, int],
) -> int:
    """Follow the step to its end, and return the exit code."""
    has_terminal = "pty" in options
    output = StepOutput(
        descriptors,
        sum(len(node.ranks) for node in started.nodes),
        has_labels="label" in options,
        is_buffered=not ("unbuffered" in options or has_terminal),
        only=only,
    )
    behaviour = StepOptions(
        kills_on_failure=values.get("kill-on-bad-exit"),
        wait_seconds=values.get("wait"),
        has_terminal=has_terminal,
        is_quiet="quiet" in options,
    )
    followed = StepRun(controller, started, output, stdin, behaviour)
    with RawTerminal(is_raw=has_terminal):
        return followed.follow()


def _is_created(
    controller: Controller,
    step: requests.StepToStart,
    options: Mapping[str, str],
    values: Mapping[str, Any],
    created: list[requests.StartedStep],
) -> bool:
    """Create the step and add it to a list. Return False, after a message, if there is none."""
    try:
        _create(controller, values["jobid"], step, options, values, created)
    except KeyboardInterrupt as error:
        if created:
            raise
        number = int(error.args[0])
        print(f"srun: Cancelled pending job step with signal {number}", file=sys.stderr)
        return False
    except FairbankError as error:
        if error.field in _OWN_SENTENCES:
            print_error("srun", error)
        else:
            what = f"Unable to create step for job {values['jobid']}: "
            print_failure("srun", error, f"srun: error: {what}")
        return False
    return True


def _requested_step(
    line: SubmissionWords,
    programs: Mapping[int, Sequence[str]],
    options: dict[str, str],
    values: Mapping[str, Any],
    input_file: str,
    key: str,
    variables: Mapping[str, str],
) -> requests.StepToStart:
    """Return the step of a command line.

    Args:
        line: the command line.
        programs: those of single ranks.
        options: options of the step, those of srun itself excepted.
        values: all options.
        input_file: the text of --input.
        key: is of this step alone.
        variables: are added to the environment.
    """
    directory = values.get("chdir") or submission.working_directory()
    own = {rank: [_program(words[0], directory), *words[1:]] for rank, words in programs.items()}
    more = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    environment = {**os.environb, **more}
    return requests.StepToStart(
        options=options,
        arguments=own.get(0) or [_program(line.script or "", directory), *line.arguments],
        programs=own,
        directory=directory,
        environment=job_environment(environment, options.get("export"), from_login=False),
        umask=submission.own_umask(),
        limits={limit: submission.soft_limit(limit) for limit in RESOURCE_LIMITS},
        input=_input_of_tasks(input_file),
        input_rank=int(input_file) if input_file.isdecimal() else None,
        terminal=terminal_size() if "pty" in options else (),
        submit_line=" ".join(("srun", *line.words)),
        key=key,
    )


def _create(
    controller: Controller,
    job: int,
    step: requests.StepToStart,
    options: Mapping[str, str],
    values: Mapping[str, Any],
    created: list[requests.StartedStep],
) -> None:
    """Create the step, as soon as other steps leave it enough cores, and add it to a list.

    A signal between the request and its answer takes effect when the step is in the list.
    """
    pause, is_printed = BUSY_SECONDS[0], "quiet" in options
    ends = time.monotonic() + values["immediate"] if "immediate" in values else None
    while not created:
        try:
            with held_signals():
                created.append(requests.create_step(controller, job, step))
        except Unavailable as error:
            if error.field not in ("busy", "controller"):
                raise
            if ends is not None and time.monotonic() >= ends:
                raise
            text = f"{error.message}; retrying"
            if error.field == "busy":
                text = f"Job {job} step creation temporarily disabled, retrying ({error.message})"
            else:  # it may have been created
                step = step._replace(repeated=True)
            if not is_printed and ends is None:
                print(f"srun: {text}", file=sys.stderr, flush=True)
            is_printed = True
            time.sleep(pause)
            pause = min(2 * pause, BUSY_SECONDS[1])
    if pause > BUSY_SECONDS[0] and "quiet" not in options:
        print(f"srun: Step created for {created[0]}", file=sys.stderr, flush=True)


def _program(name: str, directory: str) -> str:
    """Return the path of a program; its name if there is none, so that the task says so."""
    if "/" in name:
        return os.path.join(directory, name)
    paths = (os.path.join(folder, name) for folder in os.get_exec_path())
    return next((one for one in paths if os.access(one, os.X_OK) and os.path.isfile(one)), name)


def _symbols(step: requests.StartedStep) -> Symbols:
    """Return the values of symbols in the names of files of srun."""
    array, task = map(_number, ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"))
    user, job_name = os.environ.get("USER", ""), os.environ.get("SLURM_JOB_NAME", "")
    return job_symbols(step.job, user, job_name, array, task) | task_symbols(step.job, step.step)


def _descriptors(
    files: Mapping[str, str], options: Mapping[str, str], symbols: Symbols
) -> dict[int, int]:
    """Return where srun writes output and errors, by kind of frame."""
    descriptors = dict(STANDARD)
    mode = os.O_APPEND if options.get("open-mode") == "append" else os.O_TRUNC
    for kind, name in _NAMES.items():
        pattern = files[name]
        if not pattern or name in options or pattern.lower() == "all":
            continue
        path = expand_pattern(pattern, symbols, field=f"--{name}")
        try:
            descriptors[kind] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | mode, 0o666)
        except OSError as error:
            raise _not_opened(_STREAMS[kind], path, error) from error
        if name == "output" and not files["error"]:
            descriptors[ERRORS] = descriptors[OUTPUT]
    return descriptors


def _rank(text: str, step: requests.StartedStep) -> int | None:
    """Return the task that the text of --input, --output or --error names; None: it names a file.

    A number that is not smaller than the number of tasks is the name of a file, as in Slurm.
    """
    tasks = sum(len(node.ranks) for node in step.nodes)
    return int(text) if text.isdecimal() and int(text) < tasks else None


def _number(variable: str) -> int | None:
    """Return a variable that is a whole number; None: it is not."""
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None


def _input(text: str) -> int:
    """Return the descriptor with the input: a file, or standard input."""
    if not text or text.lower() == "all":
        return 0
    try:
        file = os.open(text, os.O_RDONLY | os.O_CLOEXEC)
        os.read(file, 0)  # fails for a directory
    except OSError as error:
        raise _not_opened("stdin", text, error) from error
    return file


def _input_of_tasks(text: str) -> str:
    """Return the pattern of the files that the tasks read; empty if they read that of srun."""
    if text.lower() == "none":
        return os.devnull
    return text if _OF_TASK.search(text) else ""


def _not_opened(stream: str, path: str, error: OSError) -> InvalidInput:
    return InvalidInput(f"Could not open {stream} file: {path}: {error.strerror}", field="file")
