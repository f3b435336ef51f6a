"""Limits of associations and QOS, as slurmctld and the database have them.

`scontrol --oneliner show assoc_mgr` prints a limit with its usage, as `10(3)`, and `N(3)` without a
limit. The usage of running jobs is not read here: it follows from the jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from fairbank.core import ids
from fairbank.core.errors import InvalidInput
from fairbank.core.tres import parse_counts
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Record, read_rows, split_records
from fairbank.slurm.parsers.values import ParsedRows, UnreadableLine

_COMMAND = "scontrol show assoc_mgr"
_NAMED = re.compile(r"([^()]*)(?:\((\d{1,10})\))?", re.ASCII)
_OF_USED = re.compile(r"(N|\d{1,18})?(?:\(([\d.]{1,30})\))?", re.ASCII)
_PAIR = re.compile(r"([a-z][\w/:.-]*)=(N|\d{1,18})(?:\((\d{1,20})\))?", re.ASCII)

_TRES = {
    "GrpTRES": LimitKind.GRP_TRES,
    "GrpTRESMins": LimitKind.GRP_TRES_MINS,
    "GrpTRESRunMins": LimitKind.GRP_TRES_RUN_MINS,
    "MaxTRESPJ": LimitKind.MAX_TRES,
    "MaxTRESPN": LimitKind.MAX_TRES_PER_NODE,
    "MaxTRESMinsPJ": LimitKind.MAX_TRES_MINS,
}
_JOBS = {"GrpJobs": LimitKind.GRP_JOBS, "MaxJobs": LimitKind.MAX_JOBS}
_WALL = {"GrpWall": LimitKind.GRP_WALL, "MaxWallPJ": LimitKind.MAX_WALL}

QOS_COLUMNS: Mapping[str, LimitKind | None] = {
    "Name": None,
    "Flags": None,
    "UsageFactor": None,
    "LimitFactor": None,
    "Priority": None,
    "Preempt": None,
    "PreemptMode": None,
    "PreemptExemptTime": None,
    "GrpTRES": LimitKind.GRP_TRES,
    "GrpTRESMins": LimitKind.GRP_TRES_MINS,
    "GrpTRESRunMins": LimitKind.GRP_TRES_RUN_MINS,
    "MaxTRES": LimitKind.MAX_TRES,
    "MaxTRESPerNode": LimitKind.MAX_TRES_PER_NODE,
    "MaxTRESMins": LimitKind.MAX_TRES_MINS,
    "MaxTRESPU": LimitKind.MAX_TRES_PER_USER,
    "MaxTRESPA": LimitKind.MAX_TRES_PER_ACCOUNT,
    "MinTRES": LimitKind.MIN_TRES,
    "GrpJobs": LimitKind.GRP_JOBS,
    "MaxJobsPU": LimitKind.MAX_JOBS_PER_USER,
    "MaxJobsPA": LimitKind.MAX_JOBS_PER_ACCOUNT,
    "GrpWall": LimitKind.GRP_WALL,
    "MaxWall": LimitKind.MAX_WALL,
}
"""Columns of `sacctmgr show qos`, each with its limit."""
_QOS_JOBS = frozenset({"GrpJobs", "MaxJobsPU", "MaxJobsPA"})


class LimitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Association or QOS with its limits, and their decayed usage by ended jobs.

    `seconds` are TRES-seconds, `wall_seconds` wall time. `parent` is the account above an
    association; a QOS has only a name.
    """

    name: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    limits: AssociationLimits = AssociationLimits()
    seconds: Mapping[str, float] = {}
    wall_seconds: float = 0.0


class QosRecord(msgspec.Struct, frozen=True, kw_only=True):
    """QOS as the database has it.

    `mode` is PreemptMode, empty for the cluster's; times are seconds.
    """

    name: str
    limits: AssociationLimits = AssociationLimits()
    flags: frozenset[str] = frozenset()
    usage_factor: float = 1.0
    limit_factor: float | None = None
    priority: int = 0
    preempts: frozenset[str] = frozenset()
    mode: str = ""
    exempt_seconds: int = 0


def read_association_limits(text: str) -> ParsedRows[LimitRecord]:
    """Read the associations of the cluster."""
    return read_rows(_COMMAND, _lines(text, "Account"), _association)


def read_qos_usage(text: str) -> ParsedRows[LimitRecord]:
    """Read the QOS of the same output."""
    return read_rows(
        _COMMAND,
        _lines(text, "QOS"),
        lambda cells: _limit_record(cells, _name(cells["QOS"], "QOS")),
    )


def read_qos_limits(text: str) -> ParsedRows[QosRecord]:
    """Read `sacctmgr --noheader --parsable2 show qos` with the columns of QOS_COLUMNS."""
    return read_rows(
        "sacctmgr show qos",
        split_records("sacctmgr show qos", text, tuple(QOS_COLUMNS), PIPE),
        _qos_record,
    )


def _lines(text: str, key: str) -> Iterator[Record | UnreadableLine]:
    """Yield the lines with this key.

    The text after `Account Limits` repeats the names for accounts and users of a QOS.
    """
    for number, line in enumerate(text.split("\n"), 1):
        cells: dict[str, str] = {}
        for word in line.partition(" Account Limits=")[0].split():
            name, sign, value = word.partition("=")
            if sign:
                cells.setdefault(name, value)
        if key in cells and "GrpTRES" in cells:
            yield Record(number, cells)


def _association(cells: dict[str, str]) -> LimitRecord:
    user = _name(cells.get("UserName", ""), "UserName")
    record = _limit_record(cells, _name(cells["Account"], "Account"))
    parent = record.name if user else _name(cells.get("ParentAccount", ""), "ParentAccount")
    return msgspec.structs.replace(
        record, user=user, partition=cells.get("Partition", ""), parent=parent
    )


def _limit_record(cells: Mapping[str, str], name: str) -> LimitRecord:
    tres: dict[LimitKind, dict[str, int]] = {}
    used: dict[str, float] = {}
    for field, kind in _TRES.items():
        limits, minutes = _pairs(cells.get(field, ""), field)
        tres |= {kind: limits} if limits else {}
        if kind is LimitKind.GRP_TRES_MINS:
            used = {each: 60.0 * count for each, count in minutes.items()}
    jobs = {
        kind: limit
        for field, kind in _JOBS.items()
        if (limit := _limit(cells, field)[0]) is not None
    }
    walls = {
        kind: limit
        for field, kind in _WALL.items()
        if (limit := _limit(cells, field)[0]) is not None
    }
    return LimitRecord(
        name=name,
        limits=AssociationLimits(tres=tres, jobs=jobs, wall=walls),
        seconds=used,
        wall_seconds=60 * _limit(cells, "GrpWall")[1],
    )


def _name(text: str, field: str) -> str:
    """Return `alice(60601)` without the number."""
    match = _NAMED.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{words.quoted(text)} is not a name", field=field)
    return match[1]


def _limit(cells: Mapping[str, str], field: str) -> tuple[int | None, float]:
    """Return a limit, or None, and its usage."""
    match = _OF_USED.fullmatch(text := cells.get(field, ""))
    if match is None:
        raise InvalidInput(f"{words.quoted(text)} is not a limit", field=field)
    return None if match[1] in (None, "N") else int(match[1]), float(match[2] or 0)


def _pairs(text: str, field: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return limits and usage by TRES."""
    limits, used = dict[str, int](), dict[str, int]()
    for part in filter(None, text.split(",")):
        match = _PAIR.fullmatch(part)
        if match is None:
            raise InvalidInput(f"{words.quoted(part)} is not a limit of a TRES", field=field)
        if match[2] != "N":
            limits[match[1]] = int(match[2])
        if match[3]:
            used[match[1]] = int(match[3])
    return limits, used


def _qos_record(cells: dict[str, str]) -> QosRecord:
    tres: dict[LimitKind, dict[str, int]] = {}
    jobs, wall = dict[LimitKind, int](), dict[LimitKind, int]()
    for column, kind in QOS_COLUMNS.items():
        text = cells[column]
        if kind is None or not text:
            continue
        if column in _QOS_JOBS:
            jobs[kind] = words.number(text, column)
        elif "Wall" in column:
            wall[kind] = words.length_minutes(text, column)
        else:
            tres[kind] = {
                name: int(count) for name, count in parse_counts(text, field=column).items()
            }
    mode, exempt = cells["PreemptMode"], cells["PreemptExemptTime"]
    return QosRecord(
        name=ids.name(cells["Name"], field="Name"),
        limits=AssociationLimits(tres=tres, jobs=jobs, wall=wall),
        flags=frozenset(filter(None, cells["Flags"].split(","))),
        usage_factor=words.amount(cells["UsageFactor"] or "1", "UsageFactor"),
        limit_factor=(
            words.amount(cells["LimitFactor"], "LimitFactor") if cells["LimitFactor"] else None
        ),
        priority=words.number(cells["Priority"] or "0", "Priority"),
        preempts=frozenset(filter(None, cells["Preempt"].split(","))),
        mode="" if mode == "cluster" else mode.upper(),
        exempt_seconds=words.length_seconds(exempt, "PreemptExemptTime") if exempt else 0,
    )
