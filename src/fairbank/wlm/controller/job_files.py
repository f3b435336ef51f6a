"""Files of a job: the symbols of their patterns, and their paths as they are shown. Pure."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.file_patterns import (
    ARRAY_OUTPUT,
    OUTPUT,
    Symbols,
    expand_pattern,
    job_symbols,
    task_symbols,
)
from fairbank.scheduling.pending_job import PendingJob
from fairbank.wlm.core.jobs import Submission


class JobFiles(NamedTuple):
    """Paths of the input, output and errors of a job."""

    input: str
    output: str
    error: str


def symbols_of(request: PendingJob, submission: Submission) -> Symbols:
    """Return the values of the symbols that a job shares with its steps."""
    task = request.task if request.task >= 0 else None
    return job_symbols(request.number, request.user, submission.name, request.array, task)


def output_pattern(request: PendingJob, submission: Submission) -> str:
    """Return the pattern of the output of a job."""
    return submission.output or (OUTPUT if request.array is None else ARRAY_OUTPUT)


def shown_files(request: PendingJob, submission: Submission, node: str) -> JobFiles:
    """Return the files of a job as Slurm shows them: it leaves %J, %n, %s and %t as they are.

    `node` is its first node; empty: it has none.
    """
    symbols = symbols_of(request, submission)
    if node:
        symbols["N"] = task_symbols(request.number, node=node)["N"]

    def path(pattern: str) -> str:
        with suppress(InvalidInput):  # a name with a slash: the start says so
            pattern = expand_pattern(pattern, symbols, field="output")
        return str(PurePosixPath(submission.directory, pattern))

    output = path(output_pattern(request, submission))
    error = path(submission.error) if submission.error else output
    return JobFiles(path(submission.input or "/dev/null"), output, error)
