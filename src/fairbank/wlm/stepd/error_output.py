"""Lines of the step daemon in the error output of the tasks, as slurmstepd writes them."""

from __future__ import annotations

import os
import time

from fairbank.wlm.stepd.step import TIME_LIMIT, Step
from fairbank.wlm.stepd.streams import StepStreams

_CAUSES = {
    TIME_LIMIT: " DUE TO TIME LIMIT",
    "TIMEOUT": " DUE TO TIME LIMIT",
    "PREEMPTED": " DUE TO PREEMPTION",
    "REQUEUED": " DUE TO JOB REQUEUE",
    "NODE_FAIL": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}
"""Ends of Slurm's line about a job that is ended, by the reason of the request."""


class ErrorOutput:
    """Error output of the tasks of a step: their file, or a stream to srun."""

    def __init__(self, step: Step, streams: StepStreams) -> None:
        self._step, self._streams = step, streams

    def announce(self, reason: str) -> None:
        """Say that the step is ended, and why."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S")
        self._write(f"*** {self._step.title} CANCELLED AT {at}{_CAUSES.get(reason, '')} ***")

    def report_memory(self, used: int, limit: int) -> None:
        """Say that the step is killed because its job has used more bytes than it has."""
        name = self._step.step_id
        self._write(f"{name} exceeded memory limit ({used} > {limit}), being killed")
        self.report_kills(1)

    def report_kills(self, count: int) -> None:
        """Say that processes were killed because of their memory."""
        events, name = f"{count} oom_kill event{'s' * (count > 1)}", self._step.step_id
        self._write(f"Detected {events} in {name}. Some of the step tasks have been OOM Killed.")

    def report_epilog(self, code: int) -> None:
        """Say that an epilog of a task has failed, with its exit code."""
        self._write(f"TaskEpilog failed status={code}")

    def report_failure(self, text: str) -> None:
        """Tell srun why a task was not started. The file of the task may be the one at fault."""
        self._streams.write_errors(f"slurmstepd: error: {text}\n".encode())

    def _write(self, text: str) -> None:
        line = f"slurmstepd: error: {text}\n"
        path = self._step.error or self._step.output
        if not path:
            self._streams.write_errors(line.encode())
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(path, flags)
            os.write(file, line.encode())
            os.close(file)
        except OSError:
            pass  # the job is ended all the same
