"""Allocation of srun or salloc: a job without a script, from its submission to its end."""

from __future__ import annotations

import os
import signal
import sys
import time

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.core.submission.gpus import VARIABLES
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.job_submission import RETRY_SECONDS, job_to_submit
from fairbank.wlm.commands.slurm_errors import print_failure

_QUIET_SECONDS = 0.5
"""Time in which a job starts that need not wait; until then nothing is said."""
_ENDED = "CANCELLED TIMEOUT FAILED NODE_FAIL OUT_OF_MEMORY DEADLINE PREEMPTED COMPLETED".split()


class Revoked(Exception):
    """Allocation that ended before its command began; it was said why."""


def allocate(
    controller: Controller, name: str, line: SubmissionWords
) -> tuple[int, dict[str, str]]:
    """Submit a job and wait for its nodes. Return its number, and the variables of its steps.

    Args:
        controller: the connection.
        name: srun or salloc.
        line: the command line.

    Raises:
        Revoked: the job was refused, or has ended.
    """
    job = job_to_submit(name, line, script=b"")
    try:
        number = requests.submit(controller, job).job
    except FairbankError as error:
        print_failure(name, error, f"{name}: error: Unable to allocate resources: ")
        raise Revoked from error
    is_quiet = "quiet" in job.options
    try:
        started = _wait(controller, name, number, _QUIET_SECONDS)
        if not (started.environment or started.state in _ENDED):
            limit = job.options.get("immediate")
            is_pending = started.state != "CONFIGURING"
            if is_pending and not is_quiet:
                if name == "salloc":
                    _say(name, f"Pending job allocation {number}")
                _say(name, f"job {number} queued and waiting for resources")
            started = _wait(controller, name, number, None if limit is None else float(limit))
            if started.environment and is_pending and not is_quiet:
                _say(name, f"job {number} has been allocated resources")
    except KeyboardInterrupt:
        requests.change_jobs(controller, "cancel", [str(number)])
        _say(name, f"Job allocation {number} has been revoked")
        raise Revoked from None
    if not started.environment:
        if started.state not in _ENDED:  # --immediate
            requests.change_jobs(controller, "cancel", [str(number)])
            _say(name, "error: Unable to allocate resources: Requested nodes are busy")
        else:
            _say(name, f"error: Job allocation {number} has been revoked ({started.state})")
        raise Revoked
    if name == "salloc" and not is_quiet:
        _say(name, f"Granted job allocation {number}")
    own = {"SLURM_SUBMIT_DIR": job.directory, "SLURM_SUBMIT_HOST": job.host}
    if "ntasks-per-node" in job.options:
        own["SLURM_NTASKS_PER_NODE"] = job.options["ntasks-per-node"]
    if name == "salloc":  # srun has a step with its own options
        own |= {VARIABLES[one]: job.options[one] for one in VARIABLES if one in job.options}
    return number, {**started.environment, **own}


def _wait(
    controller: Controller, name: str, number: int, seconds: float | None
) -> requests.AwaitedJob:
    """Wait for the start, also over restarts of the controller."""
    is_printed = False
    while True:
        try:
            return requests.wait_for_start(controller, number, seconds)
        except Unavailable as error:
            if not is_printed:
                _say(name, f"{error.message}; retrying")
            is_printed = True
            time.sleep(RETRY_SECONDS)


def complete(controller: Controller, name: str, number: int, code: int) -> None:
    """End the job with the exit code of its command, also over a restart of the controller.

    One that has ended stays as it is.
    """
    is_printed = False
    while True:
        try:
            requests.complete(controller, number, code << 8)
        except Unavailable as error:
            if not is_printed:
                _say(name, f"{error.message}; retrying")
            is_printed = True
            time.sleep(RETRY_SECONDS)
        except FairbankError as error:
            if error.field not in ("ended", "job"):
                _say(name, f"error: {error.message}")
            return
        else:
            return


def run_command(words: list[str], environment: dict[str, str]) -> int:
    """Run the command of salloc, or a shell, and return its exit code.

    Ctrl-C is for the command.
    """
    own = {**os.environ, **environment}
    command = words or [os.environ.get("SHELL") or "/bin/sh"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            os.execvpe(command[0], command, own)  # noqa: S606
        except OSError as error:
            _say("salloc", f'error: Unable to find command "{command[0]}": {error.strerror}')
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    signal.signal(signal.SIGINT, before)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _say(name: str, text: str) -> None:
    print(f"{name}: {text}", file=sys.stderr, flush=True)
