"""Submission of a job: what is sent to the controller, and what is printed of its answer."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fairbank.core.errors import FairbankError, InvalidInput, Unavailable
from fairbank.core.hostlist import compress, expand
from fairbank.core.submission.gpus import requested_gpus
from fairbank.core.submission.options import ARBITRARY_HOSTS, options_by_flag, read_values
from fairbank.core.submission.resources import named_nodes, requested_tasks
from fairbank.core.submission.support import NO_EFFECT, check_supported
from fairbank.core.submission.values import RESOURCE_LIMITS
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands import job_files
from fairbank.wlm.commands.job_environment import job_environment
from fairbank.wlm.commands.job_options import (
    SubmissionWords,
    merged_options,
    script_options,
    variable_options,
)
from fairbank.wlm.commands.option_errors import bad_gres, bad_node_count, bad_value
from fairbank.wlm.commands.slurm_errors import print_failure, slurm_sentence

RETRY_SECONDS = 2.0
_NEVER = "Requested node configuration is not available"
# Slurm's sentences for reasons of jobs that do not start; all others: busy nodes.
_NO_START = {
    "PartitionTimeLimit": "Requested time limit is invalid (missing or exceeds some limit)",
    "PartitionNodeLimit": _NEVER,
    "PartitionDown": "Required partition not available (inactive or drain)",
    "PartitionInactive": "Required partition not available (inactive or drain)",
}

T = TypeVar("T")


def submit_job(name: str, line: SubmissionWords) -> int:
    """Submit the job of a command line, and return the exit code."""
    job = job_to_submit(name, line)
    options = job.options
    with Controller() as controller:
        try:
            answer = requests.submit(controller, job)
        except FairbankError as error:
            if name == "srun" and slurm_sentence(error) == _NEVER:
                print("srun: request will never run", file=sys.stderr)
            print_failure(name, error, f"{name}: error: Batch job submission failed: ")
            return 1
        if "test-only" in options:
            return _print_start(name, answer)
        if name == "srun":
            print(f"srun: Job {answer.job} has been submitted", file=sys.stderr)
        elif "parsable" in options:
            cluster = options.get("clusters")
            print(f"{answer.job};{cluster}" if cluster else answer.job, flush=True)
        elif "quiet" not in options:
            print(f"Submitted batch job {answer.job}", flush=True)
        return _wait(name, controller, answer.job) if "wait" in options else 0


def print_warnings(name: str, options: Mapping[str, str], values: Mapping[str, Any]) -> None:
    """Print what is otherwise than requested, unless the command is quiet.

    Args:
        name: sbatch, srun or salloc.
        options: texts of its options, by long name.
        values: values of its options.
    """
    if "quiet" in options:
        return
    tasks, nodes = requested_tasks(values), named_nodes(values).least
    has_hosts = values.get("distribution", ("",))[0] == "arbitrary"
    if tasks is not None and tasks < nodes and not has_hosts:
        what = f"can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}"
        print(f"{name}: warning: {what}", file=sys.stderr)
    for option in sorted(options.keys() & NO_EFFECT):
        print(f"{name}: --{option} has no effect", file=sys.stderr)


def job_to_submit(
    name: str, line: SubmissionWords, script: bytes | None = None
) -> requests.JobToSubmit:
    """Return the job of a command line. Raises InvalidInput if something cannot be submitted.

    Begin and deadline are read here, since the controller has another time zone.

    Args:
        name: the command.
        line: its command line.
        script: the batch script; empty: there is none; None: the one that the command line names.
    """
    arguments: Sequence[str] = ()
    if script is None:
        script, arguments = _script(name, line)
    options = merged_options(
        [
            script_options(script, line.script or "script") if name == "sbatch" else {},
            {"job-name": "interactive"} if name == "salloc" else {},
            variable_options(name, os.environ),
            line.options,
        ]
    )
    check_supported(options)
    read_host_files(options)
    values = checked_values(name, options)
    print_warnings(name, options, values)
    return requests.JobToSubmit(
        script=script,
        options=options,
        directory=working_directory(),
        environment=job_environment(
            os.environb, options.get("export"), from_login="get-user-env" in options
        ),
        arguments=arguments,
        umask=own_umask(),
        limits={limit: soft_limit(limit) for limit in RESOURCE_LIMITS},
        host=os.uname().nodename,
        script_name=job_files.script_path(line.script) if line.script else "",
        submit_line=" ".join((name, *line.words)),
        command=name,
    )


def _script(name: str, line: SubmissionWords) -> tuple[bytes, Sequence[str]]:
    """Return the script of a job and its arguments."""
    if name == "srun":
        if line.script is None:
            raise InvalidInput("No command given to execute.", field="program")
        script = job_files.script_or_program(line.script)
        if script is None:
            return job_files.PROGRAM_SCRIPT, [line.script, *line.arguments]
        return script, line.arguments
    wrapped = line.options.get("wrap")
    if wrapped is not None and line.script is not None:
        raise InvalidInput("Script arguments not permitted with --wrap option", field="--wrap")
    return job_files.batch_script(line.script, wrapped), line.arguments


def checked_values(name: str, options: dict[str, str]) -> dict[str, Any]:
    """Return the values of the options, and write times as seconds. Raises BadOption."""
    now, values = int(time.time()), dict[str, Any]()
    for flag, option in options_by_flag(name).items():
        if (text := options.get(option.name)) is None or flag != option.flag:
            continue
        try:
            values |= read_values({option.name: text}, name)
            if option.name in ("begin", "deadline"):
                from fairbank.wlm.commands.times import begin_time

                options[option.name] = begin_time(text, now, field=flag)
        except InvalidInput as error:
            raise bad_value(name, option, text, error) from error
    least, most = named_nodes(values)
    if most is not None and most < least:
        raise bad_node_count(name, least, most)
    try:
        requested_gpus(values, is_step=name == "srun" and "jobid" in values)
    except InvalidInput as error:
        raise bad_gres(name, error) from error
    return values


def read_host_files(options: dict[str, str]) -> None:
    """Replace the names of files with hosts by the hosts; SLURM_HOSTFILE has those of the tasks."""
    if (path := options.pop("nodefile", None)) is not None:
        options["nodelist"] = job_files.hosts_in_file(path)
    if "nodelist" not in options and (path := os.environ.get("SLURM_HOSTFILE")):
        options |= {"nodelist": os.path.join(".", path), "distribution": "arbitrary"}
    is_arbitrary = options.get("distribution", "").lower() == "arbitrary"
    if is_arbitrary and "nodelist" not in options and (hosts := os.environ.get(ARBITRARY_HOSTS)):
        options["nodelist"] = hosts
    if "/" in options.get("exclude", ""):
        options["exclude"] = job_files.hosts_in_file(options["exclude"])
    if "/" in options.get("nodelist", ""):
        tasks = options.get("ntasks", "") if is_arbitrary else ""
        count = int(tasks) if tasks.isdecimal() else None
        options["nodelist"] = job_files.hosts_in_file(options["nodelist"], count)
    if is_arbitrary and "nodelist" in options:
        names = expand(options["nodelist"], field="--nodelist")
        options.setdefault("ntasks", str(len(names)))


def working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise InvalidInput(
            f"getcwd failed: {error.strerror}",
            field="directory",
            remedy="change to another directory",
        ) from None


def own_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def soft_limit(name: str) -> int:
    soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    return -1 if soft == resource.RLIM_INFINITY else soft


def _print_start(name: str, answer: requests.SubmissionAnswer) -> int:
    """Print when and where the job would start, in Slurm's words."""
    if answer.start is None:
        why = _NO_START.get(answer.reason, f"Requested nodes are busy ({answer.reason})")
        print(f"allocation failure: {why}", file=sys.stderr)
        return 1
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(answer.start))
    print(
        f"{name}: Job {answer.job} to start at {start} using {answer.cpus} processors on nodes"
        f" {compress(answer.nodes)} in partition {answer.partition}",
        file=sys.stderr,
    )
    return 0


def _wait(name: str, controller: Controller, job: int) -> int:
    """Wait for the end of a job, also over restarts of the controller. Return its exit code."""
    status = persist(name, lambda: requests.wait(controller, job))
    # sbatch(1): the exit code after a signal is 1.
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1


def persist(name: str, request: Callable[[], T]) -> T:
    """Make a request, and again while no controller answers it, which is printed once."""
    is_printed = False
    while True:
        try:
            return request()
        except Unavailable as error:
            if not is_printed:
                print(f"{name}: {error.message}; retrying", file=sys.stderr, flush=True)
            is_printed = True
            time.sleep(RETRY_SECONDS)
