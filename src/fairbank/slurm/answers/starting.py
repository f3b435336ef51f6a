"""A job at its start, as `squeue` has it: columns of fixed width, none of which holds a text that a user chose."""

from __future__ import annotations

import re

import msgspec

from fairbank.slurm.answers import words
from fairbank.values.time import DAY
from fairbank.values.trouble import Malformed

_WIDTHS = {"SubmitTime": 24, "StartTime": 24, "TimeLimit": 24, "BatchFlag": 12, "QOS": 64, "tres-alloc": 600}
FORMAT = ",".join(f"{name}:{width}" for name, width in _WIDTHS.items())
"""What `squeue --Format` is asked for."""

_LENGTH = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,2}):)?(\d{1,2}):(\d\d)", re.ASCII)


class Starting(msgspec.Struct, frozen=True, kw_only=True):
    """`limit_seconds` is None without a finite limit; `tres` is what was allocated; `batch` is whether it is a script."""

    submitted: int
    start: int
    limit_seconds: int | None
    batch: bool
    qos: str | None
    tres: str


def read_starting(text: str) -> Starting:
    """The only line of the answer. Raises Malformed when there is none, or one that cannot be read."""
    lines = text.splitlines()
    if len(lines) != 1:
        raise Malformed(f"squeue told {len(lines)} jobs where one was asked for", field="squeue")
    cells, at = {}, 0
    for name, width in _WIDTHS.items():
        cells[name] = lines[0][at : at + width].strip()
        at += width
    submitted = words.submitted(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime")
    return Starting(
        submitted=submitted,
        start=words.instant(cells["StartTime"], "StartTime") or submitted,
        limit_seconds=length_seconds(cells["TimeLimit"]),
        batch=cells["BatchFlag"] == "1",
        qos=cells["QOS"] or None,
        tres=words.tres(cells["tres-alloc"], "tres-alloc"),
    )


def length_seconds(text: str) -> int | None:
    """`5:00`, `10:00:00` or `1-00:00:00`; None for no limit. Raises Malformed."""
    if text in ("UNLIMITED", "NOT_SET", "INVALID"):
        return None
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise Malformed(f"{words.shown(text)} is not a length of time", field="TimeLimit")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return days * DAY + hours * 3600 + minutes * 60 + seconds
