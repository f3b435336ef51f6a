"""Run of a job and its details, and a job as its owner describes it before it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import msgspec

from fairbank.cluster.allocated_tres import Memory
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.tres import Counts

COMPLETED = "COMPLETED"
"""Final state of a successful run. Every other final state counts as a failure, except CANCELLED
of a run that never ran.
"""
CANCELLED = "CANCELLED"


_RUN = re.compile(r"([^/@]+)/(\d{1,10})@(\d{1,16})\.(\d{1,5})", re.ASCII)


class Run(NamedTuple):
    """One execution of a job. The job id alone is not enough: ids wrap around, and a requeued job
    keeps its id.
    """

    cluster: str
    job_id: int
    submitted: int
    restart: int = 0

    def __str__(self) -> str:
        return f"{self.cluster}/{self.job_id}@{self.submitted}.{self.restart}"

    @classmethod
    def parse(cls, text: str) -> Run:
        """Parse what `str` returns. Raises InvalidInput."""
        match = _RUN.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"{text[:64]!r} is not a run",
                field="run",
                remedy="cluster/job@submitted.restart, such as darwin/7@1795000000.0",
            )
        return check_run(cls(match[1], *map(int, match.groups()[1:])))


def squeue_name(
    job_id: int, array: int | None, task: int | None, het_job: int | None, het_offset: int
) -> str:
    """Return the job id as squeue shows it: `7`, `5_2` for a task, `7+1` for a component.

    Args:
        job_id: the job's own number.
        array: number of the array.
        task: number in the array; None for all tasks that have not started.
        het_job: number of the heterogeneous job.
        het_offset: number of the component in it.
    """
    if het_job is not None:
        return f"{het_job}+{het_offset}"
    return str(job_id) if array is None or task is None else f"{array}_{task}"


def check_run(run: Run) -> Run:
    """Check that every part of a run is in range. Raises InvalidInput, naming the part."""
    ids.cluster(run.cluster)
    for field, value, low, high in (
        ("job_id", run.job_id, 1, ids.JOB_ID_MAX),
        ("submitted", run.submitted, 0, ids.ID_MAX),
        ("restart", run.restart, 0, 65_535),
    ):
        if not low <= value <= high:
            raise InvalidInput(
                f"{value} is not a {field}",
                field=field,
                remedy=f"a whole number from {low} to {high}",
            )
    return run


class JobRequest(msgspec.Struct, frozen=True):
    """Job as its owner describes it: place, requested quantity of each TRES, time limit.

    `exclusive` requests whole nodes. `memory` is requested for each node, CPU or GPU, instead of
    `mem` in `counts`, its total. Without either the job gets the default of the partition.
    `node_requests` are TRES that a single node must have, by the option that requests them, such as
    `--gres`. The job runs on at most `max_nodes`.
    """

    cluster: str
    partition: str
    counts: Mapping[str, Fraction]
    limit_seconds: int
    qos: str | None = None
    exclusive: bool = False
    memory: Memory | None = None
    node_requests: Mapping[str, Counts] = {}
    max_nodes: int | None = None


class JobDetails(
    msgspec.Struct,
    forbid_unknown_fields=True,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
):
    """Details of a run; None if unknown.

    `tres` is what the run holds, as Slurm writes it, and `cpus` the processors in it. `exit_status`
    is that of wait(2): exit code times 256, plus the signal. `cpu_seconds` is the time that all
    processors of the run were busy. After a resized run `cpus` and `tres` may be UNKNOWN_CPUS and
    UNKNOWN_TRES. `occupied` is what the run had of the capacity in SU-minutes, at the price of its
    partition without the factor of its QOS; None: its cost, or, if it cost nothing, not known.
    """

    name: str | None = None
    qos: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    tres: str | None = None
    limit_seconds: int | None = None
    exit_status: int | None = None
    cpu_seconds: int | None = None
    occupied: int | None = None


NO_DETAILS = JobDetails()
UNKNOWN_CPUS, UNKNOWN_TRES = 0, ""
"""Size of a run that changed: replaces the known size, as None would not, and counts nothing."""


def split_status(status: int | None) -> tuple[int | None, int | None]:
    """Return the exit code and the signal, or None for both."""
    return (None, None) if status is None else divmod(status, 256)


def join_status(code: int | None, signal: int | None) -> int | None:
    """Return the status of an exit code and a signal; None if both are."""
    return None if code is None and signal is None else (code or 0) * 256 + (signal or 0)


def new_details(reported: JobDetails | None, known: JobDetails | None) -> JobDetails | None:
    """Return the details that are not known yet, or None if all of them are."""
    if reported is None or reported == known:
        return None
    if known is None:
        return reported if reported != NO_DETAILS else None
    fields = msgspec.structs.asdict(reported)
    new = {
        field: value
        for field, value in fields.items()
        if value is not None and value != getattr(known, field)
    }
    return JobDetails(**new) if new else None


def merge_details(known: JobDetails | None, new: JobDetails | None) -> JobDetails | None:
    """Return the known details, updated by the new ones."""
    if new is None or known is None:
        return known if new is None else new
    fields = msgspec.structs.asdict(new)
    return msgspec.structs.replace(
        known, **{field: value for field, value in fields.items() if value is not None}
    )
