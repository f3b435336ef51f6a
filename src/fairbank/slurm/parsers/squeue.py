"""Output of `squeue` in columns, of any version.

No column holds text that users write freely, but for the names of a user's own jobs.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import TRES_MAX
from fairbank.report.slurm.layout import letters_format, widths_format
from fairbank.report.slurm.squeue import COLUMNS
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import (
    DELIMITER,
    Cells,
    fixed_width_records,
    read_rows,
    table_of,
)
from fairbank.slurm.parsers.values import ListedJob, ParsedRows, PendingOwner, QueuedJob

QUEUE = table_of(
    "squeue",
    QueuedJob,
    {"JobID": words.job_id, "SubmitTime": words.known_instant, "State": words.state},
)
"""Output of `--states=all` with QUEUE_FORMAT, with times in UTC."""
QUEUE_FORMAT = letters_format(COLUMNS, QUEUE.columns, DELIMITER)

WAITING = table_of(
    "squeue",
    PendingOwner,
    {
        "JobID": words.job_id,
        "Account": words.name,
        "QOS": words.name,
        "SubmitTime": words.known_instant,
    },
)
"""Output of `--states=PENDING` with WAITING_FORMAT, with times in UTC."""
WAITING_FORMAT = letters_format(COLUMNS, WAITING.columns, DELIMITER)

# squeue cuts what is longer, so names and TRES have one column more than they may be long.
_NAME_WIDTH, _TRES_WIDTH = ids.NAME_MAX + 1, TRES_MAX + 100

_STARTING_WIDTHS = {
    "SubmitTime": 24,
    "StartTime": 24,
    "TimeLimit": 24,
    "BatchFlag": 12,
    "QOS": _NAME_WIDTH,
    "tres-alloc": _TRES_WIDTH,
}
STARTING_FORMAT = widths_format(COLUMNS, _STARTING_WIDTHS)


class StartingJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job in its prolog.

    `limit_seconds` is None without a finite limit, `tres` is what was allocated, `batch`: it is a
    script.
    """

    submitted: int
    start: int
    limit_seconds: int | None
    batch: bool
    qos: str | None
    tres: str


def read_starting_job(text: str) -> StartingJob:
    """Read the only line of the output.

    Raises InvalidInput for none, or one that cannot be read.
    """
    records = list(fixed_width_records(text, _STARTING_WIDTHS))
    if len(records) != 1:
        raise InvalidInput(f"squeue printed {len(records)} jobs instead of one", field="squeue")
    cells = records[0]
    submitted = cells.read("SubmitTime", words.known_instant)
    return StartingJob(
        submitted=submitted,
        start=cells.read("StartTime", words.instant) or submitted,
        limit_seconds=cells.read("TimeLimit", words.limit_seconds),
        batch=cells["BatchFlag"] != "0",  # 2 after a failed node, and so on
        qos=cells["QOS"] or None,
        tres=cells.read("tres-alloc", words.tres),
    )


_WAITING_WIDTHS = {
    "JobArrayID": 48,
    "UserName": 48,
    "Account": 48,
    "Partition": 128,
    "QOS": 48,
    "PriorityLong": 12,
    "TimeLimit": 16,
    "SubmitTime": 20,
    "StartTime": 20,
    "Reason": 64,
    "tres-alloc": 200,
}
# These are only shown, so that a longer name may be cut: 10,000 lines of full width take a second.
WAITING_JOBS_FORMAT = widths_format(COLUMNS, _WAITING_WIDTHS)
# The list of nodes is the last, as squeue never cuts it. A name with a line break has one line that
# cannot be read, which only its owner sees.
_OWN_WIDTHS = {**_WAITING_WIDTHS, "State": 16, "EndTime": 20, "Name": 128, "NodeList": 128}
OWN_JOBS_FORMAT = widths_format(COLUMNS, _OWN_WIDTHS)
_SIZE = re.compile(r"(?:^|,)(cpu|node|gres/gpu)=(\d{1,9})(?=,|$)", re.ASCII)
_JOB_NAME = re.compile(r"(\d{1,10})(?:[_+].*)?", re.ASCII)


class WaitingJob(ListedJob, frozen=True, kw_only=True, gc=False):
    """Pending job, or the tasks of an array that have not started; of a user's own also others.

    `name` is squeue's, such as 33_[2-5]. `limit_seconds` is None without a finite limit, `expected`
    the start that slurmctld expects, None if it expects none, or the start. `ends` is known of
    running jobs alone, `job_name` of own jobs alone.
    """

    name: str
    qos: str
    limit_seconds: int | None
    expected: int | None
    reason: str
    nodes: int
    cpus: int
    gpus: int
    state: str = "PENDING"
    ends: int | None = None
    node_list: str = ""
    job_name: str | None = None


def read_waiting_jobs(text: str) -> ParsedRows[WaitingJob]:
    """Read the output of `--states=PENDING` with WAITING_JOBS_FORMAT, with times in UTC."""
    return read_rows("squeue", fixed_width_records(text, _WAITING_WIDTHS), _waiting_job)


def _waiting_job(cells: Cells) -> WaitingJob:
    name = cells["JobArrayID"]
    number = words.match_cell(_JOB_NAME, name, "JobArrayID", "is not a job id")
    nodes, cpus, gpus = cells.read("tres-alloc", _size)
    return WaitingJob(
        job_id=int(number[1]),
        name=name,
        user=cells["UserName"],
        account=cells["Account"],
        partitions=tuple(cells["Partition"].split(",")),
        qos=cells["QOS"],
        priority=cells.read("PriorityLong", words.number),
        limit_seconds=cells.read("TimeLimit", words.limit_seconds),
        submitted=cells.read("SubmitTime", words.known_instant),
        expected=cells.read("StartTime", words.instant),
        reason=words.reason(cells["Reason"]),
        nodes=nodes,
        cpus=cpus,
        gpus=gpus,
    )


def read_own_jobs(text: str) -> ParsedRows[WaitingJob]:
    """Read the jobs of a user in any state that is not final, with OWN_JOBS_FORMAT."""
    return read_rows("squeue", fixed_width_records(text, _OWN_WIDTHS), _own_job)


def _own_job(cells: Cells) -> WaitingJob:
    job, state = _waiting_job(cells), cells.read("State", words.state)
    job = msgspec.structs.replace(job, job_name=cells["Name"])
    if state == "PENDING":
        return job
    ends, nodes = cells.read("EndTime", words.instant), cells["NodeList"]
    return msgspec.structs.replace(job, state=state, ends=ends, node_list=nodes)


@lru_cache(maxsize=1_024)  # a long queue has few sizes
def _size(text: str, field: str) -> tuple[int, int, int]:
    """Return the number of nodes, CPUs and GPUs."""
    # Of TRES that were cut, cpu and node come first, and GPUs after at most four others.
    size = dict(_SIZE.findall(text))
    if "cpu" not in size:
        raise InvalidInput(f"{words.quote_unknown(text)} has no CPUs", field=field)
    return int(size.get("node", 1)), int(size["cpu"]), int(size.get("gres/gpu", 0))


_HELD_WIDTHS = {
    "JobArrayID": 40,
    "Account": _NAME_WIDTH,
    "Partition": _NAME_WIDTH,
    "QOS": _NAME_WIDTH,
    "TimeLimit": 24,
    "Reason": 64,
    "admin_comment": 12,
    "UserId": 12,
    "tres-alloc": _TRES_WIDTH,
}
HELD_FORMAT = widths_format(COLUMNS, _HELD_WIDTHS)

REASONS = frozenset({"Allocation_exhausted", "No_allocation", "Allocation_frozen"})
"""Reasons of the plug-in that a deposit, a new allocation or a thaw ends. Caps of users do not."""

COMMENT_PREFIX = "Fairbank: "
"""Start of Fairbank's admin comments; plugins/prep writes the same."""

_NAME = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?", re.ASCII)


class HeldJob(msgspec.Struct, frozen=True, kw_only=True):
    """Job that the plug-in held; `name` identifies it for Slurm's commands."""

    name: str
    account: str
    partition: str
    qos: str | None
    limit_seconds: int
    tres: str
    uid: int


def read_held_jobs(text: str) -> ParsedRows[HeldJob]:
    """Read the jobs that the plug-in held, by its reason and its comment.

    Parts of heterogeneous jobs and jobs without a limit are left out: their price is unknown.
    """
    return read_rows("squeue", fixed_width_records(text, _HELD_WIDTHS), _held_job)


def _held_job(cells: Cells) -> HeldJob | None:
    if (
        cells["Reason"] not in REASONS
        or not f"{cells['admin_comment']} ".startswith(COMMENT_PREFIX)
        or not _NAME.fullmatch(cells["JobArrayID"])
    ):
        return None
    limit = cells.read("TimeLimit", words.limit_seconds)
    tres = cells.read("tres-alloc", words.tres)
    uid = cells.read("UserId", words.number)
    if limit is None:
        return None
    return HeldJob(
        name=cells["JobArrayID"],
        account=cells["Account"],
        partition=cells["Partition"],
        qos=cells["QOS"] or None,
        limit_seconds=limit,
        tres=tres,
        uid=uid,
    )
