"""Allocation of srun or salloc: a job without a script, from its submission to its end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from fairbank.core.errors import FairbankError, Unavailable
from fairbank.core.submission.gpus import VARIABLES
from fairbank.wlm.client import requests
from fairbank.wlm.client.connection import Controller
from fairbank.wlm.commands.job_options import SubmissionWords
from fairbank.wlm.commands.job_submission import RETRY_SECONDS, job_to_submit, persist
from fairbank.wlm.commands.slurm_errors import print_failure
from fairbank.wlm.commands.steps.ending_signals import held_signals

_QUIET_SECONDS = 0.5
"""Time in which a job starts that need not wait; until then nothing is said."""
_ENDED = "CANCELLED TIMEOUT FAILED NODE_FAIL OUT_OF_MEMORY DEADLINE PREEMPTED COMPLETED".split()


StepWith = Callable[[Mapping[str, str]], requests.StepToStart]
"""Function that returns a step whose environment has some more variables."""


class Revoked(Exception):
    """Allocation that ended before its command began; it was said why."""


class InteractiveJob:
    """Job of srun or salloc without a script, from its submission to its end.

    `number` is that of a job that this process has to end; 0: there is none. `created` is the
    step that was created when it started. `has_requested`: it was requested, and may have run
    although there was no answer. `step` is that whose end the controller must know first: the end
    of the job would hide it.
    """

    def __init__(self, controller: Controller, name: str) -> None:
        """Begin without a job. `name` is srun or salloc, for messages."""
        self._controller, self._name = controller, name
        self.number = 0
        self.created: requests.StartedStep | None = None
        self.has_requested = False
        self.step: int | None = None

    def allocate(
        self, line: SubmissionWords, step_with: StepWith | None = None, *, has_command: bool
    ) -> dict[str, str]:
        """Submit a job and wait for its nodes. Return the variables of its steps.

        Args:
            line: the command line.
            step_with: function that returns the step to create when the job starts.
            has_command: a command or a shell gets the nodes, as that of salloc; else srun has a
                step.

        Raises:
            Revoked: the job was refused, or has ended.
        """
        job = job_to_submit("salloc" if has_command else "srun", line, script=b"")
        is_quiet = "quiet" in job.options
        own = {"SLURM_SUBMIT_DIR": job.directory, "SLURM_SUBMIT_HOST": job.host}
        if "ntasks-per-node" in job.options:
            own["SLURM_NTASKS_PER_NODE"] = job.options["ntasks-per-node"]
        if has_command:  # srun has a step with its own options
            own |= {VARIABLES[one]: job.options[one] for one in VARIABLES if one in job.options}
        step = None if step_with is None else step_with(own)
        try:
            with held_signals():
                self.number = requests.submit(self._controller, job).job
            started = self._wait(job, step, is_quiet=is_quiet, has_command=has_command)
        except KeyboardInterrupt:
            if self.number:
                self._cancel()
                self._say(f"Job allocation {self.number} has been revoked")
            self.number = 0
            raise Revoked from None
        except FairbankError as error:
            text = f"{self._name}: error: Unable to allocate resources: "
            print_failure(self._name, error, text)
            if self.number:  # its step was refused with the wait
                self._cancel()
            self.number = 0
            raise Revoked from error
        if not started.environment:
            if started.state not in _ENDED:  # --immediate
                self._cancel()
                self._say("error: Unable to allocate resources: Requested nodes are busy")
            else:
                what = f"Job allocation {self.number} has been revoked ({started.state})"
                self._say(f"error: {what}")
            self.number = 0
            raise Revoked
        if has_command and not is_quiet:
            self._say(f"Granted job allocation {self.number}")
        self.created = started.step
        return {**started.environment, **own}

    def _wait(
        self,
        job: requests.JobToSubmit,
        step: requests.StepToStart | None,
        *,
        is_quiet: bool,
        has_command: bool,
    ) -> requests.AwaitedJob:
        """Wait until the job runs or has ended, at most as long as --immediate says."""
        started = self._wait_for_start(_QUIET_SECONDS, step)
        if started.environment or started.state in _ENDED:
            return started
        limit = job.options.get("immediate")
        is_pending = started.state != "CONFIGURING"
        if is_pending and not is_quiet:
            if has_command:
                self._say(f"Pending job allocation {self.number}")
            self._say(f"job {self.number} queued and waiting for resources")
        started = self._wait_for_start(None if limit is None else float(limit), step)
        if started.environment and is_pending and not is_quiet:
            self._say(f"job {self.number} has been allocated resources")
        return started

    def _wait_for_start(
        self, seconds: float | None, step: requests.StepToStart | None
    ) -> requests.AwaitedJob:
        def wait() -> requests.AwaitedJob:
            wanted = None if step is None else step._replace(repeated=self.has_requested)
            self.has_requested = step is not None
            return requests.wait_for_start(self._controller, self.number, seconds, wanted)

        return persist(self._name, wait)

    def _cancel(self) -> None:
        """Cancel a job that has not begun."""
        try:
            requests.change_jobs(self._controller, "cancel", [str(self.number)])
        except FairbankError as error:
            self._say(f"error: job {self.number} is not cancelled: {error.message}")

    def watch_end(self) -> None:
        """Say that the job has ended, if it does while its command goes on.

        A thread waits for that, which takes no signals.
        """
        from threading import Thread

        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        Thread(target=self._wait_for_end, args=(self.number,), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _wait_for_end(self, number: int) -> None:
        with Controller(self._controller.directory) as controller, suppress(FairbankError):
            while True:
                try:
                    requests.wait(controller, number)
                except Unavailable:
                    time.sleep(RETRY_SECONDS)
                else:
                    break
        if self.number:  # else its command has ended first
            self.number = 0
            self._say(f"Job allocation {number} has been revoked.")

    def complete(self, code: int, farewell: str = "") -> None:
        """End the job, if there is one, with the exit code of its command, after a message."""
        number, self.number = self.number, 0
        if number:
            tell_end(
                self._name,
                f"job {number}",
                lambda: requests.complete(self._controller, number, code << 8, self.step),
                farewell,
            )

    def _say(self, text: str) -> None:
        _print(f"{self._name}: {text}")


def tell_end(name: str, what: str, request: Callable[[], None], farewell: str = "") -> None:
    """Tell the controller that a job or step ends, also over its restart.

    One that has ended stays as it is.

    Args:
        name: srun or salloc, for messages.
        what: the job or step, for messages.
        request: tells it once.
        farewell: is printed before.
    """
    is_known = False

    def tell() -> None:
        nonlocal farewell, is_known
        with held_signals():
            if farewell:
                _print(farewell)
            farewell = ""
            request()
            is_known = True

    try:
        persist(name, tell)
    except KeyboardInterrupt:
        if not is_known:
            _print(f"{name}: error: the controller does not know that {what} has ended")
        raise
    except FairbankError as error:
        if error.field not in ("ended", "job", "step"):
            _print(f"{name}: error: {error.message}")


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
