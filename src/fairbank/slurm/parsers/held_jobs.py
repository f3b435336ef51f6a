"""Jobs that wait in the queue because the bank did not pay for them, as `squeue` has them: no column holds a text that a user chose."""

from __future__ import annotations

import re

import msgspec

from fairbank.core.errors import InvalidInput
from fairbank.slurm.parsers import words
from fairbank.slurm.parsers.fixed_width import cells_of, format_of
from fairbank.slurm.parsers.values import ParsedRows, Unreadable

_WIDTHS = {
    "JobArrayID": 40,
    "Account": 80,
    "Partition": 80,
    "QOS": 64,
    "TimeLimit": 24,
    "Reason": 64,
    "admin_comment": 12,
    "tres-alloc": 600,
}
FORMAT = format_of(_WIDTHS)
"""What `squeue --Format` is asked for."""

REASONS = frozenset({"Allocation_exhausted", "No_allocation", "Allocation_frozen"})
"""Those of our reasons that a deposit, a new allocation or a thaw ends. Caps of users and the like are for people."""

MARK = "Fairbank: "
"""What our admin comments begin with; plugins/prep writes the same."""

_NAME = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?", re.ASCII)


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A job that the plug-in held; `name` is what Slurm's commands know it by."""

    name: str
    account: str
    partition: str
    qos: str | None
    limit_seconds: int
    tres: str


def read_held(text: str) -> ParsedRows[Held]:
    """Those that the plug-in held, by its reason and its comment: what others held has neither. Parts of heterogeneous jobs and
    jobs without a limit are left out, since nobody can tell what they cost."""
    rows: list[Held] = []
    unreadable: list[Unreadable] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = cells_of(line, _WIDTHS)
        if (
            cells["Reason"] not in REASONS
            or not f"{cells['admin_comment']} ".startswith(MARK)
            or not _NAME.fullmatch(cells["JobArrayID"])
        ):
            continue
        try:
            limit, tres = (
                words.limit_seconds(cells["TimeLimit"], "TimeLimit"),
                words.tres(cells["tres-alloc"], "tres-alloc"),
            )
        except InvalidInput as bad:
            unreadable.append(Unreadable("squeue", number, bad.field or "", bad.message))
            continue
        if limit is not None:
            rows.append(_held(cells, limit, tres))
    return ParsedRows(tuple(rows), tuple(unreadable))


def _held(cells: dict[str, str], limit: int, tres: str) -> Held:
    return Held(
        name=cells["JobArrayID"],
        account=cells["Account"],
        partition=cells["Partition"],
        qos=cells["QOS"] or None,
        limit_seconds=limit,
        tres=tres,
    )
