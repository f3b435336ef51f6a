"""Lines upwards: how far each row is from the root. Steps are doubled, so that a long line costs little more than a short one."""

from __future__ import annotations

import msgspec
import numpy as np

from fairbank.priority.fairshare.columns import Bools, Ints

DEPTH_MAX = 1_000
"""Levels below the root. Deeper is no tree of accounts but a mistake, and would cost time for each level."""


def distances(parent: Ints) -> Ints:
    """How many steps each row is from the row whose parent is -1; -1 itself for rows that never come there."""
    is_root = parent < 0
    above = np.where(is_root, np.arange(len(parent)), parent)
    steps = (~is_root).astype(np.int64)
    for _ in range(len(parent).bit_length()):
        if is_root[above].all():
            break
        steps = steps + steps[above]
        above = above[above]
    return np.where(is_root[above], steps, -1)


def first_above(parent: Ints, passed: Bools) -> Ints:
    """For each row the nearest row above it that is not `passed`; -1 for the root. The root itself is never passed."""
    is_root = parent < 0
    own = np.arange(len(parent))
    landing = np.where(passed & ~is_root, parent, own)
    while (passed[landing] & ~is_root[landing]).any():
        landing = landing[landing]
    return np.where(is_root, -1, landing[parent])


def in_a_circle(start: int, parent: Ints) -> list[int]:
    """The rows of the circle that the line from `start` runs into, in its order."""
    met: dict[int, int] = {}
    at = start
    while at not in met:
        met[at] = len(met)
        at = int(parent[at])
    return list(met)[met[at] :]


class Shape(msgspec.Struct, frozen=True, eq=False):
    """What follows from rows alone, whatever they use.

    By row: `above` is the row on whose shares it has a part, -1 for the root; `siblings_shares` is the sum of shares in its group,
    `shares_below` the sum in the group below it.
    By place: `row` is who stands there, `up` the place of `above`, `group` the number of the group, `begin` where the group begins,
    `users` how many there are below (a user counts itself).
    `level_begins` are the places where levels begin, and the end.
    """

    root: int
    above: Ints
    siblings_shares: Ints
    shares_below: Ints
    row: Ints
    up: Ints
    group: Ints
    begin: Ints
    users: Ints
    level_begins: tuple[int, ...]

    @property
    def levels(self) -> int:
        """How many there are, the root's included."""
        return len(self.level_begins) - 1

    @property
    def users_in_all(self) -> int:
        return int(self.users[0])


def shaped(parent: Ints, shares: Ints, moved_up: Bools, is_user: Bools) -> Shape:
    """The shape of a tree whose lines all lead to its root. `shares` are 0 where they are the parent's."""
    above = first_above(parent, moved_up)
    depth = distances(above)
    row = np.lexsort((~is_user, above, depth))
    place = np.empty_like(row)
    place[row] = np.arange(len(row))
    up = place[above[row]]
    up[0] = -1
    is_first = np.diff(up, prepend=-2) != 0
    begins = np.searchsorted(depth[row], np.arange(int(depth.max()) + 2))
    shares_below = np.zeros_like(shares)
    np.add.at(shares_below, above[row[1:]], shares[row[1:]])
    return Shape(
        root=int(row[0]),
        above=above,
        siblings_shares=np.where(above < 0, 0, shares_below[above]),
        shares_below=shares_below,
        row=row,
        up=up,
        group=np.cumsum(is_first) - 1,
        begin=np.maximum.accumulate(np.where(is_first, np.arange(len(row)), 0)),
        users=_users(up, is_user[row], begins),
        level_begins=tuple(int(each) for each in begins),
    )


def _users(up: Ints, is_user: Bools, begins: Ints) -> Ints:
    users = is_user.astype(np.int64)
    for begin, end in zip(begins[-2:0:-1], begins[:1:-1], strict=True):
        np.add.at(users, up[begin:end], users[begin:end])
    return users
