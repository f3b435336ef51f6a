"""Limits of associations and QOS, as slurmctld and the database have them.

`scontrol --oneliner show assoc_mgr` prints a limit with its usage, as `10(3)`, and `N(3)` without a
limit. The usage of running jobs is not read here: it follows from the jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from fairbank.core.tres import parse_quantities
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitRecord, LimitUsage
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.columns import PIPE, Cells, Table, pairs_of, read_rows
from fairbank.slurm.parsers.values import ParsedRows
from fairbank.slurm.parsers.words import Reader

V = TypeVar("V")

_COMMAND = "scontrol show assoc_mgr"
_NAMED = re.compile(r"(.*?)(?:\((\d{1,10})\))?", re.ASCII)
_OF_USED = re.compile(r"(N|\d{1,18})?(?:\(([\d.]{1,30})\))?", re.ASCII)
_PAIR = re.compile(r"([^\s=,]+)=(N|\d{1,18})(?:\((\d{1,20})\))?", re.ASCII)

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

_QOS_TRES = {
    "GrpTRES": LimitKind.GRP_TRES,
    "GrpTRESMins": LimitKind.GRP_TRES_MINS,
    "GrpTRESRunMins": LimitKind.GRP_TRES_RUN_MINS,
    "MaxTRES": LimitKind.MAX_TRES,
    "MaxTRESPerNode": LimitKind.MAX_TRES_PER_NODE,
    "MaxTRESMins": LimitKind.MAX_TRES_MINS,
    "MaxTRESPU": LimitKind.MAX_TRES_PER_USER,
    "MaxTRESPA": LimitKind.MAX_TRES_PER_ACCOUNT,
    "MinTRES": LimitKind.MIN_TRES,
    "MaxTRESRunMinsPU": LimitKind.MAX_TRES_RUN_MINS_PER_USER,
    "MaxTRESRunMinsPA": LimitKind.MAX_TRES_RUN_MINS_PER_ACCOUNT,
}
_QOS_JOBS = {
    "GrpJobs": LimitKind.GRP_JOBS,
    "MaxJobsPU": LimitKind.MAX_JOBS_PER_USER,
    "MaxJobsPA": LimitKind.MAX_JOBS_PER_ACCOUNT,
}
_QOS_WALL = {"GrpWall": LimitKind.GRP_WALL, "MaxWall": LimitKind.MAX_WALL}


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
    usage_threshold: float | None = None


def read_association_limits(text: str) -> ParsedRows[LimitRecord]:
    """Read the associations of the cluster."""
    return read_rows(_COMMAND, _lines(text, "Account"), _association)


def read_qos_usage(text: str) -> ParsedRows[LimitRecord]:
    """Read the QOS of the same output."""
    return read_rows(
        _COMMAND,
        _lines(text, "QOS"),
        lambda cells: LimitRecord(name=cells.read("QOS", _name), **_limits_and_usage(cells)),
    )


def _lines(text: str, key: str) -> Iterator[Cells]:
    """Yield the lines with this key.

    The text after `Account Limits` repeats the names for accounts and users of a QOS.
    """
    for number, line in enumerate(text.split("\n"), 1):
        cells = pairs_of(line.partition(" Account Limits=")[0])
        if key in cells and "GrpTRES" in cells:
            yield Cells(number, cells)


def _association(cells: Cells) -> LimitRecord:
    account, user = cells.read("Account", _name), cells.read("UserName", _name, "")
    return LimitRecord(
        name=account,
        user=user,
        partition=cells.get("Partition", ""),
        parent=account if user else cells.read("ParentAccount", _name, ""),
        **_limits_and_usage(cells),
    )


def _limits_and_usage(cells: Cells) -> dict[str, Any]:
    """Return the fields of a LimitRecord besides its name."""
    tres = {kind: cells.read(field, _pairs, "") for field, kind in _TRES.items()}
    jobs, wall = (
        {kind: cells.read(field, _limit, "")[0] for field, kind in columns.items()}
        for columns in (_JOBS, _WALL)
    )
    minutes = tres[LimitKind.GRP_TRES_MINS][1]
    return {
        "limits": AssociationLimits(
            tres={kind: limits for kind, (limits, _) in tres.items() if limits},
            jobs={kind: limit for kind, limit in jobs.items() if limit is not None},
            wall={kind: limit for kind, limit in wall.items() if limit is not None},
        ),
        "used": LimitUsage(
            seconds={name: 60.0 * count for name, count in minutes.items()},
            wall_seconds=60 * cells.read("GrpWall", _limit, "")[1],
        ),
    }


def _name(text: str, field: str) -> str:
    """Return `alice(60601)` without the number."""
    return words.match_cell(_NAMED, text, field, "is not a name")[1]


def _limit(text: str, field: str) -> tuple[int | None, float]:
    """Return a limit, or None, and its usage."""
    match = words.match_cell(_OF_USED, text, field, "is not a limit")
    return None if match[1] in (None, "N") else int(match[1]), float(match[2] or 0)


def _pairs(text: str, field: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return limits and usage by TRES."""
    limits, used = dict[str, int](), dict[str, int]()
    for part in filter(None, text.split(",")):
        match = words.match_cell(_PAIR, part, field, "is not a limit of a TRES")
        if match[2] != "N":
            limits[match[1]] = int(match[2])
        if match[3]:
            used[match[1]] = int(match[3])
    return limits, used


def _qos_record(cells: Cells) -> QosRecord:
    def limits(kinds: Mapping[str, LimitKind], reader: Reader[V]) -> dict[LimitKind, V]:
        return {kind: cells.read(column, reader) for column, kind in kinds.items() if cells[column]}

    mode = cells["PreemptMode"]
    return QosRecord(
        name=cells.read("Name", words.name),
        limits=AssociationLimits(
            tres=limits(_QOS_TRES, _counts),
            jobs=limits(_QOS_JOBS, words.number),
            wall=limits(_QOS_WALL, words.length_minutes),
        ),
        flags=frozenset(filter(None, cells["Flags"].split(","))),
        usage_factor=words.amount(cells["UsageFactor"] or "1", "UsageFactor"),
        limit_factor=cells.read("LimitFactor", words.optional(words.amount)),
        priority=words.number(cells["Priority"] or "0", "Priority"),
        preempts=frozenset(filter(None, cells["Preempt"].split(","))),
        mode="" if mode == "cluster" else mode.upper(),
        exempt_seconds=cells.read("PreemptExemptTime", words.optional(words.length_seconds)) or 0,
        usage_threshold=cells.read("UsageThreshold", words.optional(words.amount)),
    )


def _counts(text: str, field: str) -> dict[str, int]:
    return {name: int(count) for name, count in parse_quantities(text, field=field).items()}


QOS_LIMITS = Table(
    "sacctmgr show qos",
    (
        "Name",
        "Flags",
        "UsageFactor",
        "LimitFactor",
        "Priority",
        "Preempt",
        "PreemptMode",
        "PreemptExemptTime",
        *_QOS_TRES,
        *_QOS_JOBS,
        *_QOS_WALL,
        "UsageThreshold",
    ),
    _qos_record,
    PIPE,
)
"""QOS in the database: `sacctmgr --noheader --parsable2 show qos`."""
