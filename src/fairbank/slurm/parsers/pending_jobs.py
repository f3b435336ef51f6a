"""Pending jobs with what their priorities depend on: `scontrol --oneliner show job`, of any
version.

The line begins with the job's name, and ends with comments and directories, into which users write
anything. What is read stands between; a line in which a user imitated it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NICE_MAX, PRIORITY_MAX
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import Record, read_rows
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine

COMMAND = "scontrol show job"
_LINE_START = re.compile(
    r"JobId=(\d{1,10}) (?:(?:ArrayJobId|HetJobId|HetJobOffset|HetJobIdSet)=\S+"
    r" )*(?:ArrayTaskId=(\S+) (?:ArrayTaskThrottle=\d+ )?)?"
)
_OWNER = re.compile(
    r" UserId=([^ ()]+)\(\d+\) GroupId=\S+ MCS_label=\S* Priority=(\d+) Nice=(-?\d+) Account=(\S+)"
    r" QOS=(\S+) (?:WCKey=\S* )?JobState=(\S+) "
)
_GIVEN = re.compile(r" CoreSpec=\S+ (.*?)MinCPUsNode=")
_NODES = re.compile(r"(\d{1,9})(?:-\d{1,9})?", re.ASCII)


class PendingFactors(msgspec.Struct, frozen=True, kw_only=True):
    """Pending job.

    Instants are seconds since 1970, None for none yet. `partitions` and `qos` are in the order of
    the request. `limit_minutes` is 0 without a finite limit, `nodes` the fewest, `cpus` and `tres`
    what is requested, `priority` 0 if held, `tasks` those of an array that have not started, as in
    `1-5`.
    """

    job_id: int
    user: str
    account: str
    qos: tuple[str, ...]
    partitions: tuple[str, ...]
    priority: int
    nice: int
    submitted: int
    eligible: int | None
    accrued: int | None
    limit_minutes: int
    nodes: int
    cpus: int
    tres: str
    tasks: str = ""


def read_pending(text: str) -> ParsedRows[PendingFactors]:
    """Read the pending jobs."""
    return read_rows(COMMAND, job_lines(text), _pending)


def job_lines(text: str) -> Iterator[Record | UnreadableLine]:
    """Yield each job as the words of its line.

    `Given` is what it was given of each node, which only `--details` prints, in Slurm's own words.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("No jobs in the system"):
            continue
        begins, whose = _LINE_START.match(line), list(_OWNER.finditer(line))
        if begins is None or len(whose) != 1:
            why = "does not occur exactly once" if begins else "is not there"
            yield UnreadableLine(
                COMMAND, number, "UserId" if begins else "JobId", f"{why}: {words.quoted(line)}"
            )
            continue
        names = ("JobId", "User", "Priority", "Nice", "Account", "QOS", "JobState")
        cells = dict(zip(names, (begins[1], *whose[0].groups()), strict=True))
        cells["ArrayTaskId"], cells["JobName"] = (
            begins[2] or "",
            line[begins.end() : whose[0].start()].removeprefix("JobName="),
        )
        for word in begins[0].split():
            name, _, value = word.partition("=")
            cells[name] = value
        given = _GIVEN.search(line, whose[0].end())
        cells["Given"] = given[1] if given else ""
        for word in line[whose[0].end() :].split():
            name, _, value = word.partition("=")
            cells.setdefault(name, value)  # what comes first is Slurm's
        yield Record(number, cells)


def _pending(cells: dict[str, str]) -> PendingFactors | None:
    if words.state(cells["JobState"], "JobState") != "PENDING":
        return None
    return PendingFactors(
        job_id=words.number(cells["JobId"], "JobId", most=ids.JOB_ID_MAX),
        user=words.user(cells["User"], "UserId"),
        account=ids.name(cells["Account"], field="Account"),
        qos=_names(cells, "QOS"),
        partitions=_names(cells, "Partition"),
        priority=words.number(cells["Priority"], "Priority", most=PRIORITY_MAX),
        nice=_nice(cells["Nice"]),
        submitted=words.required_instant(
            words.instant(words.required(cells, "SubmitTime"), "SubmitTime"), "SubmitTime"
        ),
        eligible=words.instant(words.required(cells, "EligibleTime"), "EligibleTime"),
        accrued=words.instant(words.required(cells, "AccrueTime"), "AccrueTime"),
        limit_minutes=words.length_minutes(words.required(cells, "TimeLimit"), "TimeLimit"),
        nodes=_nodes(words.required(cells, "NumNodes")),
        cpus=words.number(words.required(cells, "NumCPUs").partition("-")[0], "NumCPUs"),
        tres=words.tres(cells.get("TRES", cells.get("ReqTRES", "")), "TRES"),
        tasks=cells["ArrayTaskId"],
    )


def _names(cells: dict[str, str], field: str) -> tuple[str, ...]:
    return tuple(ids.name(name, field=field) for name in words.required(cells, field).split(","))


def _nodes(text: str) -> int:
    match = _NODES.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{words.quoted(text)} is no number of nodes", field="NumNodes")
    return int(match[1])


def _nice(text: str) -> int:
    if len(text) <= 11 and abs(int(text)) <= NICE_MAX:
        return int(text)
    raise InvalidInput(f"{words.quoted(text)} is no nice value", field="Nice")
