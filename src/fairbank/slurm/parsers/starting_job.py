"""A job at its start, as `squeue` has it: columns of fixed width, none of which holds a text that a user chose."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.fixed_width import cells_of, format_of

_WIDTHS = {
    "SubmitTime": 24,
    "StartTime": 24,
    "TimeLimit": 24,
    "BatchFlag": 12,
    "QOS": 64,
    "tres-alloc": 600,
}
FORMAT = format_of(_WIDTHS)
"""What `squeue --Format` is asked for."""


class Starting(msgspec.Struct, frozen=True, kw_only=True):
    """`limit_seconds` is None without a finite limit; `tres` is what was allocated; `batch` is whether it is a script."""

    submitted: int
    start: int
    limit_seconds: int | None
    batch: bool
    qos: str | None
    tres: str


def read_starting(text: str) -> Starting:
    """The only line of the answer. Raises InvalidInput when there is none, or one that cannot be read."""
    lines = text.splitlines()
    if len(lines) != 1:
        raise InvalidInput(f"squeue told {len(lines)} jobs where one was asked for", field="squeue")
    cells = cells_of(lines[0], _WIDTHS)
    submitted = words.submitted(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime")
    return Starting(
        submitted=submitted,
        start=words.instant(cells["StartTime"], "StartTime") or submitted,
        limit_seconds=words.limit_seconds(cells["TimeLimit"], "TimeLimit"),
        batch=cells["BatchFlag"] == "1",
        qos=cells["QOS"] or None,
        tres=words.tres(cells["tres-alloc"], "tres-alloc"),
    )
