"""Output of `sacct`: in columns, of any version, and JSON since Slurm 23.11 (data v0.0.40).

No column holds text that users write freely, so no user can forge a record.
"""

from __future__ import annotations

import re

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import REQUEUED
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, Table
from fairbank.slurm.parsers.values import AccountingJob, JobEnd, ParsedRows, UnreadableLine


def read_job(cells: Cells) -> AccountingJob:
    """Read one execution of a job from at least the cells of JOBS."""
    start = cells.read("Start", words.instant)
    partition = cells.read("Partition", words.name_or_blank)
    uid = cells.read("UID", _uid)
    return AccountingJob(
        job_id=cells.read("JobIDRaw", words.job_id),
        submitted=cells.read("Submit", words.known_instant),
        start=start,
        end=cells.read("End", words.instant),
        elapsed=cells.read("ElapsedRaw", words.number),
        state=cells.read("State", words.state),
        user=cells["User"],
        # Before slurmdbd has received the start of a job, it knows the user's name from the
        # association, and 0 as the uid.
        owner=uid if uid or partition else None,
        account=cells.read("Account", words.name),
        partition=partition,
        qos=cells.read("QOS", words.name_or_none),
        limit_seconds=cells.read("TimelimitRaw", words.minutes),
        tres=cells.read(
            "AllocTRES" if cells["AllocTRES"] or start is not None else "ReqTRES", words.tres
        ),
    )


JOBS = Table(
    "sacct",
    (
        "JobIDRaw",
        "Submit",
        "Start",
        "End",
        "ElapsedRaw",
        "State",
        "UID",
        "User",
        "Account",
        "Partition",
        "QOS",
        "TimelimitRaw",
        "AllocTRES",
        "ReqTRES",
    ),
    read_job,
)
"""Output of `--allocations --duplicates`, with times in UTC.

Not JobName, Comment or WorkDir: their owners write them, with pipes and line ends.
"""


def _uid(text: str, field: str) -> int:
    return words.number(text, field, most=ids.UID_MAX)


_EXIT = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_TIME = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d{2})(?:\.(\d{3}))?", re.ASCII)


def _job_end(cells: Cells) -> JobEnd | None:
    if "." in cells["JobIDRaw"]:
        return None  # a step
    return JobEnd(
        job_id=cells.read("JobIDRaw", words.job_id),
        submitted=cells.read("Submit", words.known_instant),
        exit_code=cells.read("ExitCode", words.optional(_exit_code)),
        cpu_seconds=cells.read("TotalCPU", words.optional(_cpu_seconds)),
    )


JOB_ENDS = Table("sacct", ("JobIDRaw", "Submit", "ExitCode", "TotalCPU"), _job_end)
"""Output of `--duplicates`, with times in UTC. Without steps TotalCPU is always 0 (sacct(1)), so
these are read for few jobs.
"""


def _exit_code(text: str, field: str) -> tuple[int, int]:
    """Return exit code and signal."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        raise InvalidInput(f"{words.quoted(text)} is no exit code", field=field)
    return int(match[1]), int(match[2])


def _cpu_seconds(text: str, field: str) -> int | None:
    """Return seconds, rounded up; None for no time, which a Slurm prints that gathers none."""
    parts = words.matched(_TIME, text, field, "is no time").groups()
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in parts)
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + (thousandths > 0) or None


# --- JSON ---

# A number may be an object that tells whether it is set; states are lists.

_JSON_COMMAND = "sacct --json"
NOT_COUNTED = (None, -2)
"""Count of energy on nodes without a meter: 22.05 prints null, 24.11 NO_VAL64 of slurmctld."""


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


class _Number(msgspec.Struct, frozen=True):
    set: bool = True
    infinite: bool = False
    number: float = 0


_OneNumber = _Number | int | None  # which of the times are plain differs from release to release


class _Times(msgspec.Struct, frozen=True):
    submission: _OneNumber
    start: _OneNumber = None
    end: _OneNumber = None
    elapsed: _OneNumber = None
    limit: _OneNumber = None


class _State(msgspec.Struct, frozen=True):
    current: list[str] | str


class _Amount(msgspec.Struct, frozen=True):
    """Amount of a TRES; memory in MiB."""

    type: str
    name: str | None
    count: int | None


class _Tres(msgspec.Struct, frozen=True):
    allocated: list[_Amount] = []
    requested: list[_Amount] = []


class _Owner(msgspec.Struct, frozen=True):
    user: str | None = None


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    job_id: int
    account: str
    partition: str
    qos: str | None = None
    user: str | None = None
    association: _Owner = _Owner()
    time: _Times
    state: _State
    tres: _Tres
    restart_cnt: _OneNumber = None


def read_json(text: bytes) -> ParsedRows[AccountingJob]:
    """Read `sacct --json`. Raises InvalidInput if the text is something else.

    Each job is read by itself, so that a strange one spoils no other.
    """
    try:
        jobs = msgspec.json.decode(text, type=_Jobs).jobs
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"{_JSON_COMMAND}: {error}", field="sacct", remedy="is it Slurm's, and built with JSON?"
        ) from error
    rows: list[AccountingJob] = []
    unreadable: list[UnreadableLine] = []
    decode = msgspec.json.Decoder(_Job).decode
    for number, raw in enumerate(jobs, 1):
        try:
            rows.append(_accounting_job(decode(raw)))
            continue
        except InvalidInput as error:
            field, why = error.field or "", error.message
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            why, _, where = str(error).partition(" - at `")
            field = where.rstrip("`").removeprefix("$.") or "job"
        unreadable.append(UnreadableLine(_JSON_COMMAND, number, field, why))
    return ParsedRows(tuple(rows), tuple(unreadable))


def _accounting_job(row: _Job) -> AccountingJob:
    time, limit = row.time, _value(row.time.limit)
    start = words.epoch(_value(time.start) or 0, "time.start")
    tres = row.tres.allocated or ([] if start else row.tres.requested)
    current = row.state.current
    states = [current] if isinstance(current, str) else current
    return AccountingJob(
        job_id=_within(row.job_id, 1, ids.JOB_ID_MAX, "job_id"),
        submitted=words.required_instant(
            words.epoch(_value(time.submission) or 0, "time.submission"), "time.submission"
        ),
        start=start,
        end=words.epoch(_value(time.end) or 0, "time.end"),
        elapsed=_within(_value(time.elapsed) or 0, 0, 10**10, "time.elapsed"),
        # Of a requeued run accounting stores only that flag; sacct prints PENDING before it.
        # Other flags, such as COMPLETING, follow the state itself.
        state=REQUEUED if REQUEUED in states else words.state((states or [""])[0], "state"),
        # Without `user`, accounting still knows the association.
        user=row.user or row.association.user or "",
        owner=None,
        account=words.name(row.account, "account"),
        partition=row.partition and words.name(row.partition, "partition"),
        qos=words.name(row.qos, "qos") if row.qos else None,
        limit_seconds=None if limit is None else _within(limit, 0, 10**9, "time.limit") * 60,
        tres=words.tres(
            ",".join(
                f"{each.type}{f'/{each.name}' if each.name else ''}={each.count}"
                for each in tres
                if each.count not in NOT_COUNTED
            ),
            "tres",
        ),
        restart=_value(row.restart_cnt),
    )


def _value(number: _OneNumber) -> int | None:
    if not isinstance(number, _Number):
        return number
    return int(number.number) if number.set and not number.infinite else None


def _within(value: int, low: int, high: int, field: str) -> int:
    if low <= value <= high:
        return value
    raise InvalidInput(f"{value} is not from {low} to {high}", field=field)
