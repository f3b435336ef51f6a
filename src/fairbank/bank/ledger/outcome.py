"""What comes of a wish."""

from __future__ import annotations

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.refusal import Refusal


class Done(msgspec.Struct, frozen=True, gc=False):
    """A wish that was granted: the entry that says so, and the allocation's figures after it.

    `written_off` is the part of a cost that nobody pays; `cpu_counted` the processor seconds that count of more that were told;
    `again` marks the answer to a wish that was granted before.
    """

    entry: int
    amount: int = 0
    allocation: int | None = None
    run: int | None = None
    project: int | None = None
    token: int | None = None
    available: int = 0
    written_off: int = 0
    cpu_counted: int | None = None
    again: bool = False


Outcome = Done | Refusal


def done(
    entry: Entry,
    allocation: Allocation | None,
    *,
    written_off: int = 0,
    cpu_counted: int | None = None,
    project: int | None = None,
    token: int | None = None,
) -> Done:
    """The answer that `entry` gives."""
    return Done(  # by position: so many names take three times as long
        entry.id,
        entry.amount,
        allocation.id if allocation else None,
        entry.run,
        project,
        token,
        allocation.available if allocation else 0,
        written_off,
        cpu_counted,
    )
