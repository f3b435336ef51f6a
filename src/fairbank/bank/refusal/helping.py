"""What the books have beside a no that may help against it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fairbank.bank.allocation import Allocation, AllocationState


class Alternative(msgspec.Struct, frozen=True):
    """Another project of the same user that could pay: its account and what it has left."""

    account: str
    available: int


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """Other projects that could pay; the account of the project that was asked; and, where it has no allocation at the time, the
    `nearest` one that it may draw on at another."""

    alternatives: tuple[Alternative, ...] = ()
    account: str | None = None
    nearest: Allocation | None = None


NOTHING_KNOWN = Help()


def nearest(
    line: tuple[int, ...], resource: str | None, found: Iterable[Allocation], start: int
) -> Allocation | None:
    """Of the allocations found, the one that a run of `line[0]` on this resource which started then missed by least: its own, or what
    its parents share."""
    usable = (
        each
        for each in found
        if each.project in line
        and each.resource == resource
        and (each.project == line[0] or each.shared)
        and not each.covers(start)
        and (each.state is not AllocationState.ENDED or each.end <= start)
    )
    return min(
        usable,
        key=lambda each: (each.start - start if start < each.start else start - each.end, each.id),
        default=None,
    )
