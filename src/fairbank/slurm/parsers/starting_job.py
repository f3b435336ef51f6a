"""A job at its start, as `squeue` has it: columns of fixed width, none of which holds a text that a user chose."""

from __future__ import annotations

import msgspec

from fairbank.core.errors import Malformed
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.fixed_width import fixed_width_cells, fixed_width_format

_STARTING_WIDTHS = {
    "SubmitTime": 24,
    "StartTime": 24,
    "TimeLimit": 24,
    "BatchFlag": 12,
    "QOS": 64,
    "tres-alloc": 600,
}
STARTING_FORMAT = fixed_width_format(_STARTING_WIDTHS)
"""What `squeue --Format` is asked for."""


class StartingJob(msgspec.Struct, frozen=True, kw_only=True):
    """`limit_seconds` is None without a finite limit; `tres` is what was allocated; `batch` is whether it is a script."""

    submitted: int
    start: int
    limit_seconds: int | None
    batch: bool
    qos: str | None
    tres: str


def read_starting_job(text: str) -> StartingJob:
    """The only line of the answer. Raises Malformed when there is none, or one that cannot be read."""
    lines = text.splitlines()
    if len(lines) != 1:
        raise Malformed(f"squeue told {len(lines)} jobs where one was asked for", field="squeue")
    cells = fixed_width_cells(lines[0], _STARTING_WIDTHS)
    submitted = words.required_instant(words.instant(cells["SubmitTime"], "SubmitTime"), "SubmitTime")
    return StartingJob(
        submitted=submitted,
        start=words.instant(cells["StartTime"], "StartTime") or submitted,
        limit_seconds=words.limit_seconds(cells["TimeLimit"], "TimeLimit"),
        batch=cells["BatchFlag"] == "1",
        qos=cells["QOS"] or None,
        tres=words.tres(cells["tres-alloc"], "tres-alloc"),
    )
