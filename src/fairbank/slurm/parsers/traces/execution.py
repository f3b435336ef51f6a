"""Execution of a job from whatever columns of `sacct` were kept. Of the past not all can be had."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from fairbank.cluster.accounting_job import RESIZING, UNFINISHED_STATES
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import FINAL_STATES, LOST
from fairbank.core.slurm_numbers import CPUS_MAX
from fairbank.core.time import LIMIT_MAX_SECONDS
from fairbank.core.tres import parse_counts
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.values import is_next_record, seconds_since_change

Cells = Mapping[str, str]

STATES = UNFINISHED_STATES.union(FINAL_STATES) - {LOST} | {
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
}
"""All states that sacct prints."""
SLACK = 60
"""Seconds that may be lost where a suspension begins or ends."""

_ID = re.compile(r"(\d{1,10})(?:[_+].*)?", re.ASCII)


class Execution(NamedTuple):
    """One time that a job ran, or is pending. Instants are seconds since 1970.

    `name` is the id as sacct prints it, `job` the number that it begins with. `elapsed` is without
    the `suspended` seconds, None if it never ran or has not ended. `allocated` and `requested` are
    CPUs, None for unknown; `limit` is in seconds, None for unknown or unlimited. `user`, `account`
    and `partition` are empty for unknown. One that was `resized` ran only until its resources
    changed: the next record of the job has the rest.
    """

    name: str
    job: int
    submitted: int
    start: int | None
    end: int | None
    elapsed: int | None
    suspended: int
    allocated: int | None
    requested: int | None
    limit: int | None
    user: str
    account: str
    partition: str
    resized: bool

    def is_continued_by(self, other: Execution) -> bool:
        """Return True if the other one is the rest of this one after a change of resources."""
        return (
            self.resized
            and self.name == other.name
            and self.end is not None
            and other.start is not None
            and is_next_record(self.end, other.submitted, other.start)
        )

    def joined_with(self, rest: Execution) -> Execution:
        """Return both as one execution, with the larger size; without a time if the rest runs."""
        elapsed = None
        if rest.elapsed is not None:
            since_change = seconds_since_change(self.end or 0, rest.start or 0, rest.elapsed)
            elapsed = (self.elapsed or 0) + since_change
        sizes = [size for size in (self.allocated, rest.allocated) if size is not None]
        return rest._replace(
            submitted=self.submitted,
            start=self.start,
            elapsed=elapsed,
            suspended=max(self.suspended, rest.suspended),
            allocated=max(sizes, default=None),
        )


REQUIRED_COLUMNS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "the id of the job": (("JobIDRaw",), ("JobID",)),
    "when it was submitted": (("Submit",),),
    "how it ended": (("State",),),
    "how long it ran": (("ElapsedRaw",), ("Elapsed",), ("Start", "End")),
    "how many CPUs it had": (
        ("AllocTRES",),
        ("AllocCPUS",),
        ("NCPUS",),
        ("ReqTRES",),
        ("ReqCPUS",),
    ),
}
"""Required information, and columns that give it, alone or together; the first one counts."""

FORMAT = (
    "JobIDRaw,Submit,Start,End,ElapsedRaw,Suspended,State,User,Account,Partition,TimelimitRaw,"
    "AllocTRES,ReqTRES"
)
"""Columns that give all of it, none of them written freely by users."""


def missing_information(columns: Collection[str]) -> str | None:
    """Describe what these columns lack, and the columns that would give it; None if nothing."""
    for what, readers in REQUIRED_COLUMNS.items():
        if not any(set(names) <= set(columns) for names in readers):
            return f"{what} ({', or '.join(' and '.join(names) for names in readers)})"
    return None


def is_step(cells: Cells) -> bool:
    """Return True for a step, which is part of a job with a line of its own."""
    return "." in _id(cells)


def read_execution(cells: Cells) -> Execution:
    """Read an execution.

    Raises InvalidInput: with the column as field for a value that cannot be read, without a field
    for columns that contradict each other.
    """
    name = _id(cells)
    submitted = words.known_instant(cells["Submit"], "Submit")
    match = _ID.fullmatch(name)
    if match is None or int(match[1]) > ids.JOB_ID_MAX:
        raise InvalidInput(
            f"{words.quote_unknown(name)} is not the id of a job",
            field="JobIDRaw" if "JobIDRaw" in cells else "JobID",
        )
    start, end = (words.instant(cells.get(which, ""), which) for which in ("Start", "End"))
    state = words.state(cells["State"], "State")
    return Execution(
        name=name,
        job=int(match[1]),
        submitted=submitted,
        start=start,
        end=end,
        elapsed=_elapsed(cells, state, start, end),
        suspended=words.length_seconds(cells.get("Suspended") or "00:00:00", "Suspended"),
        allocated=_first(cells, {"AllocTRES": _cpus, "AllocCPUS": _count, "NCPUS": _count}),
        requested=_first(cells, {"ReqTRES": _cpus, "ReqCPUS": _count}),
        limit=_first(cells, {"TimelimitRaw": words.minutes, "Timelimit": _limit}),
        user=cells.get("User") or cells.get("UID", ""),
        account=cells.get("Account") or cells.get("Group", ""),
        partition=cells.get("Partition", ""),
        resized=state == RESIZING,
    )


def _id(cells: Cells) -> str:
    return cells["JobIDRaw"] if "JobIDRaw" in cells else cells["JobID"]


def _elapsed(cells: Cells, state: str, start: int | None, end: int | None) -> int | None:
    """Return the run time without suspensions, as Slurm counts it."""
    if state not in STATES:
        raise InvalidInput(f"{words.quote_unknown(state)} is not a job state", field="State")
    elapsed = _first(cells, {"ElapsedRaw": _seconds, "Elapsed": _length})
    if start is not None and end is not None:
        if end < start:
            raise InvalidInput("ended before it started")
        if elapsed is None:
            elapsed = _seconds(str(end - start), "End")
        elif elapsed > end - start:
            raise InvalidInput("ran longer than from its start to its end")
        elif (paused := _first(cells, {"Suspended": words.length_seconds})) is not None:
            if elapsed + paused < end - start - SLACK:
                raise InvalidInput(
                    "ran shorter than from its start to its end, and was not suspended for the rest"
                )
            if elapsed + paused > end - start + SLACK:
                raise InvalidInput(
                    "ran and was suspended for longer than from its start to its end"
                )
    waits_or_runs = (
        (state in UNFINISHED_STATES and state != RESIZING)
        or ("Start" in cells and start is None)
        or ("End" in cells and end is None)
    )
    return None if waits_or_runs or (elapsed == 0 and _has_held_nothing(cells, state)) else elapsed


def _has_held_nothing(cells: Cells, state: str) -> bool:
    """Return True for a job that was cancelled while pending: sacct prints a start and 0 s."""
    return not cells["AllocTRES"] if "AllocTRES" in cells else state == "CANCELLED"


ColumnReader = Callable[[str, str], int | None]


def _first(cells: Cells, readers: Mapping[str, ColumnReader]) -> int | None:
    """Return the value of the first of these columns that exists and is not empty."""
    return next(
        (read(cells[column], column) for column, read in readers.items() if cells.get(column)), None
    )


def _count(text: str, field: str) -> int:
    return words.number(text, field, most=CPUS_MAX)


def _seconds(text: str, field: str) -> int:
    return words.number(text, field, most=LIMIT_MAX_SECONDS)


def _length(text: str, field: str) -> int:
    return _seconds(str(words.length_seconds(text, field)), field)


def _limit(text: str, field: str) -> int | None:
    return words.length_minutes(text, field) * 60 or None


@lru_cache(maxsize=4_096)
def _cpus(text: str, field: str) -> int | None:
    """Return the CPUs of a TRES text. Cached, since few of many jobs differ in it."""
    counted = words.tres(text, field)
    cpus = parse_counts(counted, field=field).get("cpu") if counted else None
    return None if cpus is None else _count(str(cpus), field)
