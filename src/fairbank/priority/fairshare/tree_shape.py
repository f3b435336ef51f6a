"""Shape of a tree given by parents: depth and levels. Steps are doubled, so that a long chain costs
little more than a short one.
"""

from __future__ import annotations

import msgspec
import numpy as np

from fairbank.priority.fairshare.columns import Bools, Ints

DEPTH_MAX = 1_000
"""Maximum number of levels below the root. A deeper tree is a mistake, and each level costs
time.
"""


def distances(parent: Ints) -> Ints:
    """Return the number of steps from each row to the row whose parent is -1; -1 for rows that do
    not reach it.
    """
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
    """Return for each row the nearest row above it that is not `passed`; -1 for the root. The root
    is never passed.
    """
    is_root = parent < 0
    own = np.arange(len(parent))
    landing = np.where(passed & ~is_root, parent, own)
    while (passed[landing] & ~is_root[landing]).any():
        landing = landing[landing]
    return np.where(is_root, -1, landing[parent])


def in_a_circle(start: int, parent: Ints) -> list[int]:
    """Return the rows of the circle that the chain from `start` reaches, in order."""
    met: dict[int, int] = {}
    at = start
    while at not in met:
        met[at] = len(met)
        at = int(parent[at])
    return list(met)[met[at] :]


class Shape(msgspec.Struct, frozen=True, eq=False):
    """Facts that follow from the rows alone, without usage.

    By row: `above` is the row in whose shares it has a part, -1 for the root; `siblings_shares` is
    the sum of shares in its group, `shares_below` the sum in the group below it. By place: `row` is
    the row at the place, `up` the place of `above`, `group` the number of the group, `begin` the
    place where the group begins, `users` the number of users below (a user counts itself).
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
        """Return the number of levels, the root's included."""
        return len(self.level_begins) - 1

    @property
    def users_in_all(self) -> int:
        return int(self.users[0])


def shaped(parent: Ints, shares: Ints, moved_up: Bools, is_user: Bools) -> Shape:
    """Return the shape of a tree whose chains all reach its root. `shares` are 0 for rows on their
    parent's shares.
    """
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
