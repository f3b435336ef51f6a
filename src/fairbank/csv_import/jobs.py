"""Jobs of any scheduler from a CSV file, as records of accounting."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import UTC, tzinfo
from itertools import product
from typing import NamedTuple

import msgspec

from fairbank.cluster.accounting_job import AccountingJob
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, final_state
from fairbank.core.slurm_numbers import CPUS_MAX, NODES_MAX
from fairbank.core.time import LIMIT_MAX_SECONDS, Instant, only_instant, parse_clock_time
from fairbank.core.tres import parse_counts, parse_job_tres
from fairbank.csv_import.table import CsvRow, CsvTable, TableFields

JOB_FIELDS = TableFields(
    required=("job_id", "user", "account", "start"),
    optional=(
        "end",
        "elapsed",
        "cpu_time",
        "submitted",
        "restart",
        "partition",
        "qos",
        "state",
        "exit_code",
        "tres",
        "cpus",
        "memory",
        "gpus",
        "nodes",
    ),
    one_of=(("cpus", "tres"), ("end", "elapsed")),
    record="job",
)
_TRES = {"cpus": "cpu", "memory": "mem", "gpus": "gres/gpu", "nodes": "node"}

_JOB_ID = re.compile(r"(\d{1,10})(?:\.(?!\d+$)[\w.-]{1,255})?", re.ASCII)
# Part of a job: 12_4, 12_[1-3], 12[4], 12.4 of an array, 12+1 of a heterogeneous job.
_PART_ID = re.compile(r"\d{1,10}(_\d+|_?\[.*\](\..*)?|\+\d+|\.\d+)", re.ASCII)
_EXIT_MAX = 256 + 127
"""PBS adds 256 to the signal that ended a job."""
_ELAPSED = re.compile(r"(?:(\d{1,4})-)?(\d{1,6}):(\d\d):(\d\d)", re.ASCII)
_ROUNDING_SECONDS = 60
"""By how much a measured time may exceed that from start to end. It is not charged."""


class JobFileRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for a file of jobs.

    partitions  names of the cluster's partitions; jobs of a file without this column ran in the
                only one
    check_qos   function that returns a QOS of the cluster, and raises InvalidInput with the field
                qos for another one
    uid_of      function that returns the uid of a user; None for a user who is gone
    now         time in seconds since 1970 after which no job ends
    zone        time zone of times that name none
    """

    partitions: Collection[str]
    check_qos: Callable[[str], str]
    uid_of: Callable[[str], int | None]
    now: int
    zone: tzinfo = UTC


def parse_job_table(table: CsvTable, rules: JobFileRules) -> list[AccountingJob]:
    """Return the jobs of a table; a line that stands there twice counts once.

    Raises InvalidInput: a line has an error, or two lines differ about one run.
    """
    first: dict[tuple[int, int, int | None], tuple[int, AccountingJob]] = {}

    def parse_row(row: CsvRow) -> AccountingJob:
        job = _job(row, rules)
        line, known = first.setdefault((job.job_id, job.submitted, job.restart), (row.line, job))
        if known != job:
            raise InvalidInput(
                f"line {line} has another job with the number {job.job_id} and the same time",
                field="job_id",
                remedy="add a column for submitted, or for restart: 0, 1, ...",
            )
        return job

    table.parse(parse_row)
    return [job for _, job in first.values()]


def _job(row: CsvRow, rules: JobFileRules) -> AccountingJob:
    cells = row.cells
    submitted, start, end, elapsed = _times(row, rules)
    user = cells["user"]
    return AccountingJob(
        job_id=_job_id(cells["job_id"]),
        submitted=submitted,
        start=start,
        end=end,
        elapsed=elapsed,
        state=_state(row),
        user=user,
        owner=_count(row, "user", ids.UID_MAX)
        if user.isdigit()
        else rules.uid_of(_name(row, "user")),
        account=_name(row, "account"),
        partition=_partition(row, rules.partitions),
        qos=rules.check_qos(_name(row, "qos")) if "qos" in cells else None,
        limit_seconds=None,
        tres=_tres(row),
        restart=_count(row, "restart", 65_535) if "restart" in cells else 0,
        cpu_seconds=_seconds(row, "cpu_time"),
    )


class _Times(NamedTuple):
    """Times of a line, by their columns; None: there is none, or it is the start."""

    start: int
    end: int | None
    submitted: int | None


def _times(row: CsvRow, rules: JobFileRules) -> tuple[int, int, int, int]:
    """Return submission, start, end and elapsed seconds.

    The file has the end, the seconds, or both.
    """
    cells = row.cells
    elapsed = _seconds(row, "elapsed")
    start, end, submitted = _read_times(row, elapsed, rules)
    if end is None:
        if elapsed is None:
            raise InvalidInput(
                "the job has neither an end nor elapsed time",
                field="end",
                remedy="give one of them",
            )
        end = start + elapsed
    _check_order(row, submitted, start, end, rules.now)
    span = end - start
    if elapsed is not None and elapsed > span + _ROUNDING_SECONDS:
        raise InvalidInput(
            f"{elapsed} s are longer than from start to end, {span} s",
            field="elapsed",
            remedy="check start, end and elapsed",
        )
    if span > LIMIT_MAX_SECONDS:
        raise InvalidInput(
            f"from start to end are {span} s, more than ten years",
            field="end" if "end" in cells else "elapsed",
            remedy="check start and end",
        )
    elapsed = span if elapsed is None else min(elapsed, span)
    return start if submitted is None else submitted, start, end, elapsed


def _read_times(row: CsvRow, elapsed: int | None, rules: JobFileRules) -> _Times:
    """Return the times of the line.

    In the hour that occurs twice, their order and the elapsed time may tell which is meant.
    Raises InvalidInput.
    """
    cells = row.cells
    # Written as the start, the submission is the start.
    is_start = cells.get("submitted", cells["start"]) == cells["start"]
    ends = _instants(row, "end", rules) if "end" in cells else (None,)
    submissions = (None,) if is_start else _instants(row, "submitted", rules)
    readings = [
        _Times(*times) for times in product(_instants(row, "start", rules), ends, submissions)
    ]
    ordered = [times for times in readings if _is_ordered(times, elapsed, rules.now)]
    exact = [times for times in ordered if times.end == times.start + (elapsed or 0)]
    possible = (exact if elapsed is not None else []) or ordered or readings
    for field in _Times._fields:
        instants = sorted({getattr(times, field) for times in possible})
        if instants != [None]:
            only_instant(cells[field], instants, rules.zone, field=field)
    return possible[0]


def _is_ordered(times: _Times, elapsed: int | None, now: int) -> bool:
    """Return whether submission, start, end and the present follow each other."""
    submitted, start, end = times.submitted, times.start, times.end
    last = start + (elapsed or 0) if end is None else end
    return (submitted is None or submitted <= start) and start <= last <= now


def _instants(row: CsvRow, field: str, rules: JobFileRules) -> tuple[Instant, ...]:
    """Return the times that a cell can mean, at least one. Raises InvalidInput."""
    instants = parse_clock_time(row.cells[field], rules.zone, field=field)
    return instants or (only_instant(row.cells[field], (), rules.zone, field=field),)


def _check_order(row: CsvRow, submitted: int | None, start: int, end: int, now: int) -> None:
    if submitted is not None and submitted > start:
        raise InvalidInput(
            f"{row.cells['submitted']!r} is after the start {row.cells['start']!r}",
            field="submitted",
            remedy="a job is submitted before it starts, or then",
        )
    field = "end" if "end" in row.cells else "elapsed"
    shown = row.cells[field]
    if end < start:
        raise InvalidInput(
            f"{shown!r} is before its start {row.cells['start']!r}",
            field=field,
            remedy="list only jobs that have ended",
        )
    if end > now:
        raise InvalidInput(
            f"{shown!r} is in the future", field=field, remedy="list only jobs that have ended"
        )


def _seconds(row: CsvRow, field: str) -> int | None:
    """Return seconds from a whole number, or from [d-]hh:mm:ss; None for an empty cell."""
    text = row.cells.get(field)
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 10:
        return int(text)
    match = _ELAPSED.fullmatch(text)
    if match is None or int(match[3]) > 59 or int(match[4]) > 59:
        raise InvalidInput(
            f"{text[:40]!r} is not a duration",
            field=field,
            remedy="whole seconds such as 5400, or [d-]hh:mm:ss such as 1:30:00",
        )
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _job_id(text: str) -> int:
    # Several parts with the number of their job would be one run, and only one would be charged.
    # The agent reports each part with a number of its own, which the text does not show.
    if _PART_ID.fullmatch(text):
        raise InvalidInput(
            f"{text[:40]!r} is a part of a job, not a job number",
            field="job_id",
            remedy="give each part a number of its own; in Slurm that is JobIDRaw: sacct -X -o"
            " JobIDRaw,..., and --column job_id=JobIDRaw",
        )
    match = _JOB_ID.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= ids.JOB_ID_MAX:
        raise InvalidInput(
            f"{text[:40]!r} is not a job number",
            field="job_id",
            remedy=f"a whole number from 1 to {ids.JOB_ID_MAX}, such as 1234, or 1234.server",
        )
    return int(match[1])


def _name(row: CsvRow, field: str) -> str:
    return ids.name(row.cells[field], field=field)


def _count(row: CsvRow, field: str, most: int, least: int = 0) -> int:
    text = row.cells[field]
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and least <= int(text) <= most):
        raise InvalidInput(
            f"{text[:40]!r} is not a whole number in range",
            field=field,
            remedy=f"a whole number from {least} to {most}",
        )
    return int(text)


def _partition(row: CsvRow, partitions: Collection[str]) -> str:
    known = sorted(partitions)
    name = row.cells.get("partition", known[0] if len(known) == 1 else None)
    if name is not None and name in partitions:
        return name
    fault = "the partition is missing" if name is None else f"there is no partition {name[:64]!r}"
    raise InvalidInput(
        fault, field="partition", remedy=f"the cluster has {', '.join(known[:8]) or 'none'}"
    )


def _state(row: CsvRow) -> str:
    if "state" in row.cells:
        text = row.cells["state"]
        # sacct writes `CANCELLED by 1000`; other programs have no certain case.
        if (state := final_state(text.upper().replace(" BY ", " by "))) is None:
            raise InvalidInput(
                f"{text[:40]!r} is not a final state",
                field="state",
                remedy=f"one of {', '.join(FINAL_STATES)}; or leave the column out, perhaps for"
                " exit_code",
            )
        return state
    failed = "exit_code" in row.cells and _count(row, "exit_code", _EXIT_MAX) > 0
    return "FAILED" if failed else "COMPLETED"


def _tres(row: CsvRow) -> str:
    """Return what the job had, as Slurm writes it."""
    if "tres" in row.cells:
        parse_job_tres(row.cells["tres"], field="tres")
        return row.cells["tres"]
    if "cpus" not in row.cells:
        raise InvalidInput(
            "the job has neither tres nor cpus",
            field="cpus",
            remedy="give one: 8, or cpu=8,mem=16G",
        )
    _count(row, "cpus", CPUS_MAX, least=1)
    for field, most, least in (("gpus", CPUS_MAX, 0), ("nodes", NODES_MAX, 1)):
        if field in row.cells:
            _count(row, field, most, least)
    if "memory" in row.cells:
        _check_memory(row.cells["memory"])
    given = [field for field in _TRES if field in row.cells]
    return ",".join(f"{_TRES[field]}={row.cells[field]}" for field in given)


def _check_memory(text: str) -> None:
    try:
        parse_counts(f"mem={text}", field="memory")
    except InvalidInput as error:
        raise InvalidInput(
            f"{text[:40]!r} is not an amount of memory",
            field="memory",
            remedy="MiB such as 16384, or with K, M, G, T: 16G",
        ) from error
