"""Lines of `scontrol --oneliner show job`, of any version; pending jobs with what their priorities
depend on, and ended jobs.

The line begins with the job's name, and ends with comments and directories, into which users write
anything. What is read stands between; a line in which a user imitated it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from typing import Any

import msgspec

from fairbank.cluster.accounting_job import UNFINISHED_STATES, UnreadableLine
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX, PRIORITY_MAX
from fairbank.report.slurm.scontrol import NO_JOBS
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Cells, Records, pairs_of, read_rows
from fairbank.slurm.parsers.values import ListedJob, ParsedRows

COMMAND = "scontrol show job"
_LINE_START = re.compile(
    r"JobId=(\d{1,10}) (?:(?:ArrayJobId|HetJobId|HetJobOffset|HetJobIdSet)=\S+"
    r" )*(?:ArrayTaskId=(\S+) (?:ArrayTaskThrottle=\d+ )?)?"
)
# Names may contain blanks but no `=`, so a part that a user imitates cannot extend into a real one.
_OWNER = re.compile(
    r" UserId=([^=]+)\((\d+)\) GroupId=[^=]+ MCS_label=[^=]* Priority=(\d+) Nice=(-?\d+)"
    r" Account=([^=]+) QOS=([^=]+) (?:WCKey=[^=]* )?JobState=(\S+) "
)
_NUMBERS = re.compile(r"JobId=(\d{1,10}) (?:ArrayJobId=(\d{1,10}) )?", re.ASCII)
_GIVEN = re.compile(r" CoreSpec=\S+ (.*?)MinCPUsNode=")


def job_lines(text: str) -> Records:
    """Yield each job as the words of its line.

    `Given` is what it was given of each node, which only `--details` prints, in Slurm's own words.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith(NO_JOBS):
            continue
        begins, whose = _LINE_START.match(line), list(_OWNER.finditer(line))
        if begins is None or len(whose) != 1:
            why = "does not occur exactly once" if begins else "is not there"
            yield UnreadableLine(
                COMMAND,
                number,
                "UserId" if begins else "JobId",
                f"{why}: {words.quote_unknown(line)}",
            )
            continue
        owner = whose[0]
        match = _GIVEN.search(line, owner.end())
        fields = ("UserId", "Uid", "Priority", "Nice", "Account", "QOS", "JobState")
        # The later ones count: users write at the end of the line, and into the job's name.
        cells = pairs_of(line[owner.end() :]) | pairs_of(begins[0])
        cells |= zip(fields, owner.groups(), strict=True)
        cells["ArrayTaskId"] = begins[2] or ""
        cells["JobName"] = line[begins.end() : owner.start()].removeprefix("JobName=")
        cells["Given"] = match[1] if match else ""
        yield Cells(number, cells)


def listed_fields(cells: Cells) -> dict[str, Any]:
    """Return the fields of a ListedJob."""
    return {
        "job_id": cells.read("JobId", words.job_id),
        "user": cells.read("UserId", words.user),
        "account": cells.read("Account", words.name),
        "partitions": cells.read("Partition", words.names),
        "priority": cells.read("Priority", _priority),
        "submitted": cells.read("SubmitTime", words.known_instant),
    }


_priority = partial(words.number, most=PRIORITY_MAX)


class PendingFactors(ListedJob, frozen=True, kw_only=True):
    """Pending job, with what its priority depends on.

    `qos` are in the order of the request. `accrued` is the instant from which the age counts, None
    for none yet. `limit_minutes` is 0 without a finite limit, `nodes` the fewest, `cpus` and `tres`
    what is requested, `tasks` those of an array that have not started, as in `1-5`.
    """

    qos: tuple[str, ...]
    nice: int
    accrued: int | None
    limit_minutes: int
    nodes: int
    cpus: int
    tres: str
    tasks: str = ""


def read_pending(text: str) -> ParsedRows[PendingFactors]:
    """Read the pending jobs."""
    return read_rows(COMMAND, job_lines(text), _pending)


def _pending(cells: Cells) -> PendingFactors | None:
    if cells.read("JobState", words.state) != "PENDING":
        return None
    return PendingFactors(
        **listed_fields(cells),
        qos=cells.read("QOS", words.names),
        nice=cells.read("Nice", _nice),
        accrued=cells.read("AccrueTime", words.instant),
        limit_minutes=cells.read("TimeLimit", words.length_minutes),
        nodes=cells.read("NumNodes", _fewest),
        cpus=cells.read("NumCPUs", _fewest),
        tres=words.tres(cells.get("TRES", cells.get("ReqTRES", "")), "TRES"),
        tasks=cells["ArrayTaskId"],
    )


def _fewest(text: str, field: str) -> int:
    """Return the first number of `2` or `2-4`."""
    return words.number(text.partition("-")[0], field)


def _nice(text: str, field: str) -> int:
    if len(text) <= 11 and abs(int(text)) <= NICE_MAX:
        return int(text)
    raise InvalidInput(f"{words.quote_unknown(text)} is not a nice value", field=field)


class EndedJob(msgspec.Struct, frozen=True):
    """Job that is over and that slurmctld remembers (MinJobAge, 300 s by default).

    `state` is Slurm's word. `task` is None for no task, and for the tasks of an array that never
    started.
    """

    job_id: int
    array: int | None
    task: int | None
    state: str


def read_ended_jobs(text: str, numbers: Collection[int]) -> tuple[EndedJob, ...]:
    """Read the ended jobs and arrays with these numbers: `scontrol --oneliner show job`.

    Lines that cannot be read are left out; the reader of the queue reports them.
    """
    known = {str(number) for number in numbers}
    matches = ((line, _NUMBERS.match(line)) for line in text.split("\n"))
    lines = (line for line, match in matches if match and known & set(match.groups()))
    return read_rows(COMMAND, job_lines("\n".join(lines)), _ended_job).rows


def _ended_job(cells: Cells) -> EndedJob | None:
    state = cells.read("JobState", words.state)
    if state in UNFINISHED_STATES:
        return None
    task = cells["ArrayTaskId"]
    return EndedJob(
        job_id=cells.read("JobId", words.job_id),
        array=cells.read("ArrayJobId", words.optional(words.job_id), ""),
        task=words.number(task, "ArrayTaskId") if task.isdecimal() else None,
        state=state,
    )
