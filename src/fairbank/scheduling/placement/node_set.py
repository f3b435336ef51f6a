"""Sets of nodes, by their places in the order of the machine: bit i of a whole number is node i (decision 0023)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

NodeSet: TypeAlias = int
"""`&` and `|` are those of sets, `bit_count()` is the size, `not` says that it is empty. Never negative: use `without` for a difference."""
Places: TypeAlias = npt.NDArray[np.intp]

NOBODY: NodeSet = 0


def everybody(count: int) -> NodeSet:
    """The first `count` nodes."""
    return (1 << count) - 1


def one(place: int) -> NodeSet:
    return 1 << place


def of(places: Iterable[int]) -> NodeSet:
    """The nodes at these places."""
    found = NOBODY
    for place in places:
        found |= 1 << place
    return found


def without(some: NodeSet, others: NodeSet) -> NodeSet:
    """Those of `some` that are not among the others. Twenty times as quick as `some & ~others`, which makes a negative number."""
    return some ^ (some & others)


def packed(flags: npt.NDArray[np.bool_]) -> NodeSet:
    """The nodes whose flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def places(some: NodeSet) -> Places:
    """Where they are, in order."""
    raw = np.frombuffer(some.to_bytes((some.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def each(some: NodeSet) -> Iterator[int]:
    """The same, one after the other: quicker where they are few."""
    while some:
        lowest = some & -some
        yield lowest.bit_length() - 1
        some ^= lowest


def first(some: NodeSet, count: int) -> NodeSet:
    """The `count` lowest; all where they are fewer."""
    low, high = 0, some.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (some & ((1 << middle) - 1)).bit_count() >= count:
            high = middle
        else:
            low = middle + 1
    return some & ((1 << low) - 1)


def edges(some: NodeSet) -> Places:
    """Its runs of consecutive nodes in order: a row for each, where it begins and just behind its end."""
    return places(some ^ (some << 1)).reshape(-1, 2)


def runs(some: NodeSet) -> list[tuple[int, int]]:
    """The same in Python's own numbers."""
    return [(begin, end) for begin, end in edges(some).tolist()]


def between(begin: int, end: int) -> NodeSet:
    """The nodes from place `begin` until just before `end`."""
    return (1 << end) - (1 << begin)


def has_run(some: NodeSet, length: int) -> bool:
    """Whether `length` consecutive nodes are among them."""
    got = 1
    while got < length and some:
        step = min(got, length - got)
        some &= some >> step
        got += step
    return bool(some)
