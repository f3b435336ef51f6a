"""Allocation of srun or salloc: a job without a script, from its submission to its end."""

from __future__ import annotations

import os
import signal
import sys

from fairbank.core.errors import FairbankError
from fairbank.core.submission.gpus import VARIABLES
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.client.requests import wait_for_start
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.job_submission import job_to_submit, persist
from fairbank.wlm.commands.slurm_errors import print_failure
from fairbank.wlm.commands.steps.ending_signals import handled_signals, interrupt
from fairbank.wlm.commands.steps.task_ends import exit_code

_QUIET_SECONDS = 0.5
"""Time in which a job starts that need not wait; until then nothing is said."""
_ENDED = "CANCELLED TIMEOUT FAILED NODE_FAIL OUT_OF_MEMORY DEADLINE PREEMPTED COMPLETED".split()


_OF_COMMAND = signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2
"""Signals that salloc leaves to its command."""


class Revoked(Exception):
    """Allocation that ended before its command began; it was said why."""


def allocate(
    controller: Controller, name: str, line: SubmissionWords, *, has_command: bool
) -> tuple[int, dict[str, str]]:
    """Submit a job and wait for its nodes. Return its number, and the variables of its steps.

    Args:
        controller: the connection.
        name: srun or salloc, for messages.
        line: the command line.
        has_command: a command or a shell gets the nodes, as that of salloc; else srun has a step.

    Raises:
        Revoked: the job was refused, or has ended.
    """
    job = job_to_submit("salloc" if has_command else "srun", line, script=b"")
    try:
        number = requests.submit(controller, job).job
    except FairbankError as error:
        print_failure(name, error, f"{name}: error: Unable to allocate resources: ")
        raise Revoked from error
    is_quiet = "quiet" in job.options
    try:
        started = persist(name, lambda: wait_for_start(controller, number, _QUIET_SECONDS))
        if not (started.environment or started.state in _ENDED):
            limit = job.options.get("immediate")
            is_pending = started.state != "CONFIGURING"
            if is_pending and not is_quiet:
                if has_command:
                    _say(name, f"Pending job allocation {number}")
                _say(name, f"job {number} queued and waiting for resources")
            seconds = None if limit is None else float(limit)
            started = persist(name, lambda: wait_for_start(controller, number, seconds))
            if started.environment and is_pending and not is_quiet:
                _say(name, f"job {number} has been allocated resources")
    except KeyboardInterrupt:
        _cancel(controller, name, number)
        _say(name, f"Job allocation {number} has been revoked")
        raise Revoked from None
    if not started.environment:
        if started.state not in _ENDED:  # --immediate
            _cancel(controller, name, number)
            _say(name, "error: Unable to allocate resources: Requested nodes are busy")
        else:
            _say(name, f"error: Job allocation {number} has been revoked ({started.state})")
        raise Revoked
    if has_command and not is_quiet:
        _say(name, f"Granted job allocation {number}")
    own = {"SLURM_SUBMIT_DIR": job.directory, "SLURM_SUBMIT_HOST": job.host}
    if "ntasks-per-node" in job.options:
        own["SLURM_NTASKS_PER_NODE"] = job.options["ntasks-per-node"]
    if has_command:  # srun has a step with its own options
        own |= {VARIABLES[one]: job.options[one] for one in VARIABLES if one in job.options}
    return number, {**started.environment, **own}


def _cancel(controller: Controller, name: str, number: int) -> None:
    """Cancel a job that has not begun."""
    try:
        requests.change_jobs(controller, "cancel", [str(number)])
    except FairbankError as error:
        _say(name, f"error: job {number} is not cancelled: {error.message}")


def complete(controller: Controller, name: str, number: int, code: int) -> None:
    """End the job with the exit code of its command, also over a restart of the controller.

    One that has ended stays as it is.
    """
    try:
        persist(name, lambda: requests.complete(controller, number, code << 8))
    except KeyboardInterrupt:
        _say(name, f"error: the controller does not know that job {number} has ended")
        raise
    except FairbankError as error:
        if error.field not in ("ended", "job"):
            _say(name, f"error: {error.message}")


def run_command(name: str, words: list[str], environment: dict[str, str]) -> int:
    """Run the command of salloc, or a shell, and return its exit code.

    Signals of the terminal are for the command. SIGTERM is forwarded to it, and SIGHUP too, which
    ends this wait, as in Slurm.
    """
    own = {**os.environ, **environment}
    command = words or [os.environ.get("SHELL") or "/bin/sh"]
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
            os.execvpe(command[0], command, own)  # noqa: S606
        except OSError as error:
            _say(name, f'error: Unable to find command "{command[0]}": {error.strerror}')
        finally:
            os._exit(1)

    def forward(number: int, _: object) -> None:
        os.kill(pid, number)
        if number == signal.SIGHUP:
            interrupt(number)

    with (
        handled_signals(_OF_COMMAND, signal.SIG_IGN),
        handled_signals((signal.SIGTERM, signal.SIGHUP), forward),
    ):
        status = os.waitpid(pid, 0)[1]
    return exit_code(status)


def _say(name: str, text: str) -> None:
    print(f"{name}: {text}", file=sys.stderr, flush=True)
