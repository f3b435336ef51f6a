"""Output of `sacct`: in columns, of any version, and JSON since Slurm 23.11 (data v0.0.40).

No column holds text that users write freely, so no user can forge a record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from fairbank.cluster.accounting_job import (
    EMPTY,
    RESIZING,
    UNFINISHED_STATES,
    AccountingJob,
    UnreadableLine,
)
from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.final_state import REQUEUED, final_state
from fairbank.report.slurm.layout import names_in
from fairbank.report.slurm.notation import PARTITION_LIMIT
from fairbank.report.slurm.sacct import SACCT
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, Records, Table, read_rows, unreadable_line
from fairbank.slurm.parsers.values import JobEnd, JobGroup, MeasuredStep, ParsedRows
from fairbank.slurm.parsers.words import Reader

V = TypeVar("V")


def read_job(cells: Cells, command: str = "sacct") -> AccountingJob:
    """Read one execution of a job from at least the cells of JOBS.

    Only the cells that identify and time it, and its state, are required. Another one may be
    unreadable, and is then blank: a job that never ran needs none of them.
    """
    gaps: list[UnreadableLine] = []

    def read_or_blank(field: str, reader: Reader[V], blank: V) -> V:
        try:
            return cells.read(field, reader)
        except InvalidInput as error:
            gaps.append(unreadable_line(command, cells, error))
            return blank

    start = cells.read("Start", words.instant)
    # A job that ran had a partition and TRES, and an account, unless Slurm demands none. slurmdbd
    # may lack them, or never receive them.
    partition = read_or_blank("Partition", _partitions if start is None else _partition, "")
    uid = read_or_blank("UID", _uid_or_none, None)
    return AccountingJob(
        job_id=cells.read("JobIDRaw", words.job_id),
        submitted=cells.read("Submit", words.known_instant),
        start=start,
        end=cells.read("End", words.instant),
        elapsed=cells.read("ElapsedRaw", words.number),
        state=cells.read("State", _state_of_job),
        user=cells["User"],
        # Before slurmdbd has received the start of a job, it knows the user's name from the
        # association, and 0 as the uid.
        owner=uid if uid or partition else None,
        account=read_or_blank("Account", words.name_or_blank if start is None else _account, ""),
        partition=partition,
        qos=read_or_blank("QOS", words.name_or_none, None),
        limit_seconds=read_or_blank("TimelimitRaw", words.minutes, None),
        has_own_limit=cells["TimelimitRaw"] != PARTITION_LIMIT,
        tres=(
            read_or_blank("AllocTRES", _allocated_tres, "")
            if cells["AllocTRES"] or start is not None
            else read_or_blank("ReqTRES", words.tres, "")
        ),
        restart=read_or_blank(RESTARTS, _restarts, None) if RESTARTS in cells else None,
        gaps=tuple(gaps),
    )


RESTARTS = "Restarts"
"""Count of restarts, which only JSON has in every version."""


JOBS = Table(
    "sacct",
    names_in(
        SACCT,
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


_uid_or_none, _restarts = words.optional(_uid), words.optional(words.number)


def _partitions(text: str, field: str) -> str:
    """Return the partition. A job that has not started may have several, with commas between."""
    return text and ",".join(words.names(text, field))


def _partition(text: str, field: str) -> str:
    return _not_blank(_partitions(text, field), field)


def _account(text: str, field: str) -> str:
    return _not_blank(words.name_or_blank(text, field), field)


def _allocated_tres(text: str, field: str) -> str:
    return _not_blank(words.tres(text, field), field)


def _not_blank(text: str, field: str) -> str:
    """Return the text. Raises InvalidInput if it is empty."""
    if not text:
        raise InvalidInput(EMPTY, field=field)
    return text


def _state_of_job(text: str, field: str) -> str:
    """Return the state. Raises InvalidInput for one of which it is unknown if it is final."""
    state = words.state(text, field)
    if state in UNFINISHED_STATES or final_state(state) is not None:
        return state
    raise InvalidInput(f"{words.quote_unknown(text)} is not a job state known here", field=field)


def _job_group(cells: Cells) -> JobGroup:
    return JobGroup(cells.read("JobIDRaw", words.job_id), cells.read("GID", _uid))


JOB_GROUPS = Table("sacct", names_in(SACCT, "JobIDRaw", "GID"), _job_group)
"""Output of `--allocations`. Only the rules of submission need the group of a job."""

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


JOB_ENDS = Table("sacct", names_in(SACCT, "JobIDRaw", "Submit", "ExitCode", "TotalCPU"), _job_end)
"""Output of `--duplicates`, with times in UTC. Without steps TotalCPU is always 0 (sacct(1)), so
these are read for few jobs.
"""

SYSTEM_COMMENTS = Table(
    "sacct",
    names_in(SACCT, "JobIDRaw", "Submit", "SystemComment"),
    lambda cells: (cells.read("Submit", words.known_instant), cells["SystemComment"]),
)
"""Output of `--allocations`, with times in UTC: submission and comment. Slurm writes the comment,
but it may have a path that its user chose.
"""


def _measured_step(cells: Cells) -> MeasuredStep:
    job, is_step, _ = cells["JobIDRaw"].partition(".")
    peak = cells.read("MaxRSS", words.optional(_kibibytes)) or 0
    utilization = _GPU_UTILIZATION.search(cells["TRESUsageInTot"]) if is_step else None
    return MeasuredStep(
        job_id=words.job_id(job, "JobIDRaw"),
        submitted=cells.read("Submit", words.known_instant),
        peak=peak * int(cells["NTasks"] or 1) if is_step else None,
        gpu_seconds=(
            int(utilization[1]) / 100 * cells.read("ElapsedRaw", words.number)
            if utilization
            else None
        ),
    )


_GPU_UTILIZATION = re.compile(r"(?:^|,)gres/gpuutil=(\d{1,7})(?:,|$)", re.ASCII)
MEASURED_STEPS = Table(
    "sacct",
    names_in(SACCT, "JobIDRaw", "Submit", "NTasks", "MaxRSS", "ElapsedRaw", "TRESUsageInTot"),
    _measured_step,
)
"""Output of `--duplicates --units=K`, in which steps have the memory."""

_KIBIBYTES = re.compile(r"(\d{1,15})(?:\.\d+)?K?", re.ASCII)


def _kibibytes(text: str, field: str) -> int:
    return int(words.match_cell(_KIBIBYTES, text, field, "is not a size in KiB")[1])


def _exit_code(text: str, field: str) -> tuple[int, int]:
    """Return exit code and signal."""
    match = _EXIT.fullmatch(text)
    if match is None or int(match[1]) > 255 or int(match[2]) > 127:
        raise InvalidInput(f"{words.quote_unknown(text)} is not an exit code", field=field)
    return int(match[1]), int(match[2])


def _cpu_seconds(text: str, field: str) -> int | None:
    """Return seconds, rounded as seff does; None for no time.

    A Slurm that gathers none prints no time.
    """
    parts = words.match_cell(_TIME, text, field, "is not a time").groups()
    days, hours, minutes, seconds, thousandths = (int(part or 0) for part in parts)
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole + (thousandths >= 500) if whole or thousandths else None


# --- JSON ---

# A number may be an object that tells whether it is set; states are lists. Each job becomes the
# cells of JOBS, so that both forms have one reader.

_JSON_COMMAND = "sacct --json"
NOT_COUNTED = (None, -2)
"""Count of energy on nodes without a meter: 22.05 prints null, 24.11 NO_VAL64 of slurmctld."""


class _Jobs(msgspec.Struct, frozen=True):
    jobs: list[msgspec.Raw]


class _JobId(msgspec.Struct, frozen=True, kw_only=True):
    """Id of a job, whatever its other values are."""

    job_id: Any = None


class _Job(_JobId, frozen=True, kw_only=True):
    """Job, of which no value is trusted to have its type."""

    account: Any = None
    partition: Any = None
    qos: Any = None
    user: Any = None
    association: Any = None
    time: Any = None
    state: Any = None
    tres: Any = None
    restart_cnt: Any = None


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
    reader = partial(read_job, command=_JSON_COMMAND)
    return read_rows(_JSON_COMMAND, _json_records(jobs), reader)


def _json_records(jobs: Sequence[msgspec.Raw]) -> Records:
    decode = msgspec.json.Decoder(_Job).decode
    for number, raw in enumerate(jobs, 1):
        try:
            yield Cells(number, _json_cells(decode(raw)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            cells = Cells(number, {"JobIDRaw": _json_job_id(raw)})
            yield unreadable_line(_JSON_COMMAND, cells, InvalidInput(str(error), field="job"))


def _json_job_id(raw: msgspec.Raw) -> str:
    """Return the id of a job that cannot be decoded otherwise; empty if there is none."""
    try:
        return _text(msgspec.json.decode(raw, type=_JobId).job_id)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _json_cells(job: _Job) -> dict[str, str]:
    """Return the cells of JOBS, and RESTARTS. There is no UID: JSON has the names only."""
    times, tres = _fields(job.time), _fields(job.tres)
    return {
        "JobIDRaw": _text(job.job_id),
        "Submit": _time(times.get("submission")),
        "Start": _time(times.get("start")),
        "End": _time(times.get("end")),
        "ElapsedRaw": _number(times.get("elapsed")) or "0",
        "State": _state(_fields(job.state).get("current")),
        "UID": "",
        # Without `user`, accounting still knows the association.
        "User": _text(job.user) or _text(_fields(job.association).get("user")),
        "Account": _text(job.account),
        "Partition": _text(job.partition),
        "QOS": _text(job.qos),
        "TimelimitRaw": _limit(times.get("limit")),
        "AllocTRES": _tres(tres.get("allocated")),
        "ReqTRES": _tres(tres.get("requested")),
        RESTARTS: _number(job.restart_cnt),
    }


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return a value as a cell; of another type than expected, in a form that no reader takes."""
    if value is None:
        return ""
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_plain else f"{value!r:.40}"


def _number(value: object) -> str:
    """Return a number as a cell; empty if it is not set or infinite."""
    if not isinstance(value, dict):
        return _text(value)
    if not value.get("set", True) or value.get("infinite"):
        return ""
    number = value.get("number", 0)
    return _text(int(number) if isinstance(number, float) and number.is_integer() else number)


def _limit(value: object) -> str:
    """Return a time limit in minutes as a cell."""
    is_unset = isinstance(value, dict) and not value.get("set", True) and not value.get("infinite")
    return PARTITION_LIMIT if is_unset else _number(value)


def _time(value: object) -> str:
    """Return a time as a cell; 0 stands for never."""
    text = _number(value)
    return "" if text == "0" else f"@{text}" if text else ""


_RECORDED_FLAGS = (RESIZING, REQUEUED)
"""Flags that accounting records instead of a state. sacct prints PENDING before them."""


def _state(current: object) -> str:
    states = current if isinstance(current, list) else [current]
    flags = [flag for flag in _RECORDED_FLAGS if flag in states]
    return _text((flags or states or [""])[0])


def _tres(amounts: object) -> str:
    """Return TRES as in columns, with memory in MiB."""
    if not isinstance(amounts, list):
        return _text(amounts)
    counted = ((row, row.get("count", "?")) for row in map(_fields, amounts))
    return ",".join(
        f"{row.get('type')}{f'/{name}' if (name := row.get('name')) else ''}={count}"
        for row, count in counted
        if count not in NOT_COUNTED
    )
