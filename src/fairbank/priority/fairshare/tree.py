"""Tree of associations: accounts and users with their shares, built from rows and checked; its
shape; and the result of a fair-share algorithm over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import NO_VAL, ON_PARENT, SHARES_MAX, U32_MAX
from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long, Longs, Parents, quotient

DEPTH_MAX = 1_000
"""Maximum number of levels below the root. A deeper tree is a mistake, and takes time."""


def distances(parent: Ints) -> Ints:
    """Return the steps from each row to the root; -1 for rows that do not reach it."""
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
    """Return the nearest row above each row that is not `passed`; -1 for the root."""
    is_root = parent < 0
    own = np.arange(len(parent))
    landing = np.where(passed & ~is_root, parent, own)
    while (passed[landing] & ~is_root[landing]).any():
        landing = landing[landing]
    return np.where(is_root, -1, landing[parent])


def find_cycle(start: int, parent: Ints) -> list[int]:
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


def build_shape(parent: Ints, shares: Ints, moved_up: Bools, is_user: Bools) -> Shape:
    """Return the shape of a tree.

    Args:
        parent: row of each row's parent, -1 for the root.
        shares: own shares; 0 for rows on their parent's shares.
        moved_up: rows on their parent's shares, whose rows below belong to the next one above.
        is_user: rows of users; the others are accounts.
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
        level_begins=tuple(int(level_begin) for level_begin in begins),
    )


def _users(up: Ints, is_user: Bools, begins: Ints) -> Ints:
    users = is_user.astype(np.int64)
    for begin, end in zip(begins[-2:0:-1], begins[:1:-1], strict=True):
        np.add.at(users, up[begin:end], users[begin:end])
    return users


LEVEL_SHARES_MAX = U32_MAX
"""Maximum sum of the shares of siblings: Slurm adds them in 32 bits."""


class ShareAssociation(NamedTuple):
    """Row of the tree. An account has a parent and no user; the parent of a user is its account.
    The root is the account without a parent.
    """

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    shares: int = 1

    def __str__(self) -> str:
        user = f", user {self.user}" if self.user else ""
        return (
            "account"
            f" {self.account}{user}{f', partition {self.partition}' if self.partition else ''}"
        )


class Tree(msgspec.Struct, frozen=True, eq=False):
    """Rows in the given order, which decides ties, with one number of each column for every row.

    `parent` is the row of the account above, -1 for the root; it may be later than the row itself.
    `shape` is the tree in which shares are divided.
    """

    rows: tuple[ShareAssociation, ...]
    parent: Parents
    shares: Ints
    is_user: Bools
    shape: Shape

    @property
    def root(self) -> int:
        return self.shape.root

    @property
    def stands_on_parent(self) -> Bools:
        """Return True for each row whose shares are `parent`."""
        on_parent: Bools = self.shares == ON_PARENT
        return on_parent


def build_tree(rows: Sequence[ShareAssociation]) -> Tree:
    """Return the tree of these rows. Raises InvalidInput, naming the row and the remedy."""
    rows = tuple(rows)
    accounts = _accounts(rows)
    root = _root(rows)
    parent = np.fromiter(
        (_parent(at, row, accounts, root) for at, row in enumerate(rows)), np.int64, len(rows)
    )
    shares = np.fromiter((_shares(at, row) for at, row in enumerate(rows)), np.int64, len(rows))
    is_user = np.fromiter((bool(row.user) for row in rows), np.bool_, len(rows))
    _check_lines(rows, parent)
    shape = build_shape(
        parent, np.where(shares == ON_PARENT, 0, shares), shares == ON_PARENT, is_user
    )
    _check_sums(rows, shape)
    return Tree(rows, parent.astype(np.int32), shares, is_user, shape)


def sum_usage(tree: Tree, own: ArrayLike) -> Longs:
    """Return the usage of every row with all below it, from the own usage of users, and of accounts
    for deleted users.

    Rows are added one after the other, each to all accounts above it, as slurmctld does when it
    starts: sums of long doubles depend on the order. Raises InvalidInput.
    """
    own = usage_of(tree, own)
    total = np.zeros(len(own), Long)
    rows = np.flatnonzero(own)
    block = max(1, 1_000_000 // tree.shape.levels)  # of rows at once, for the sake of memory
    for begin in range(0, len(rows), block):
        lines = [rows[begin : begin + block]]
        while (above := np.where(lines[-1] < 0, -1, tree.parent[lines[-1]])).max() >= 0:
            lines.append(above)
        ancestors = np.stack(lines, axis=1)
        reached = ancestors >= 0
        np.add.at(
            total,
            ancestors[reached],
            np.broadcast_to(own[lines[0], None], ancestors.shape)[reached],
        )
    return total


def usage_of(tree: Tree, usage: ArrayLike) -> Longs:
    """Return `usage` as a column of long doubles. Raises InvalidInput for invalid usage."""
    column = np.asarray(usage, Long)
    if column.shape != tree.parent.shape:
        raise InvalidInput(
            f"usage of {column.size} rows for a tree of {len(tree.rows)}",
            field="usage",
            remedy="give one figure for each association",
        )
    wrong = np.flatnonzero(~(np.isfinite(column) & (column >= 0)))
    if len(wrong):
        at = int(wrong[0])
        raise _malformed(
            at,
            tree.rows[at],
            f"{column[at]} is not a usage",
            "usage",
            "give a finite number of billing-seconds, 0 or more",
        )
    return column


# --- what may be wrong with rows ---


def _malformed(at: int, row: ShareAssociation, what: str, field: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"row {at + 1} ({row}): {what}", field=field, remedy=remedy)


def _accounts(rows: Sequence[ShareAssociation]) -> dict[str, int]:
    """Return the row of each account."""
    first: dict[tuple[str, str, str], int] = {}
    for at, row in enumerate(rows):
        if not row.account:
            raise _malformed(
                at,
                row,
                "there is no account",
                "account",
                "name the account that the association belongs to",
            )
        if row.partition and not row.user:
            raise _malformed(
                at,
                row,
                "an account is in no partition",
                "partition",
                "leave the partition out, or name the user",
            )
        if (before := first.setdefault(row[:3], at)) != at:
            raise _malformed(
                at,
                row,
                f"row {before + 1} is the same association",
                "account",
                "give each account, user and partition once",
            )
    return {account: at for (account, user, _), at in first.items() if not user}


def _root(rows: Sequence[ShareAssociation]) -> int:
    roots = [at for at, row in enumerate(rows) if not row.user and not row.parent]
    if not roots:
        raise InvalidInput(
            "no account is without a parent",
            field="parent",
            remedy="give the root account, with no parent",
        )
    if len(roots) > 1:
        other = roots[1]
        raise _malformed(
            other,
            rows[other],
            f"row {roots[0] + 1} ({rows[roots[0]]}) has no parent either",
            "parent",
            "name the parent of all but the root",
        )
    return roots[0]


def _parent(at: int, row: ShareAssociation, accounts: dict[str, int], root: int) -> int:
    if at == root:
        return -1
    if row.user and row.parent not in ("", row.account):
        raise _malformed(
            at,
            row,
            f"its parent is {row.parent}",
            "parent",
            "a user's parent is the account; leave it out",
        )
    above = row.account if row.user else row.parent
    if (account := accounts.get(above)) is None:
        field = "account" if row.user else "parent"
        raise _malformed(
            at,
            row,
            f"there is no account {above}",
            field,
            "give the account a row of its own, or correct the name",
        )
    return account


def _shares(at: int, row: ShareAssociation) -> int:
    # Shares of a file may be a fraction, or NaN.
    if not (0 <= row.shares <= ON_PARENT and row.shares == int(row.shares)):
        remedy = f"a whole number from 0 to {SHARES_MAX}, or {ON_PARENT} for parent"
        raise _malformed(at, row, f"{row.shares} are no shares", "shares", remedy)
    return row.shares


def _check_lines(rows: Sequence[ShareAssociation], parent: Ints) -> None:
    depth = distances(parent)
    lost = np.flatnonzero(depth < 0)
    if len(lost):
        cycle = find_cycle(int(lost[0]), parent)
        path = " -> ".join(rows[at].account for at in [*cycle[:8], cycle[0]])
        raise _malformed(
            cycle[0],
            rows[cycle[0]],
            f"it is above itself: {path}",
            "parent",
            "give one of them a parent that leads to the root",
        )
    deepest = int(depth.argmax())
    if depth[deepest] > DEPTH_MAX:
        raise _malformed(
            deepest,
            rows[deepest],
            f"{depth[deepest]} levels below the root",
            "parent",
            f"a tree may have {DEPTH_MAX} levels; correct the parents",
        )


def _check_sums(rows: Sequence[ShareAssociation], shape: Shape) -> None:
    over = np.flatnonzero(shape.shares_below > LEVEL_SHARES_MAX)
    if len(over):
        at = int(over[0])
        sum_below = int(shape.shares_below[at])
        remedy = (
            f"their sum may be {LEVEL_SHARES_MAX}, where Slurm's own would run over; give all of"
            " them smaller shares in the same proportion"
        )
        raise _malformed(
            at, rows[at], f"those below it have {sum_below} shares together", "shares", remedy
        )


NO_LEVEL = Long(NO_VAL)
"""Level of rows without one: the root, and accounts on their parent's shares. Slurm prints it
blank; it sorts as this number.
"""


class Standings(msgspec.Struct, frozen=True, eq=False):
    """Result for all associations, as columns with one number for each row of the tree. All are
    from 0 to 1 but effective usage under DEPTH_OBLIVIOUS.

    `usage` is that of the row with all below it. Slurm never computes `norm_usage` of the root and
    prints it blank; here the root follows the rule of the others.
    """

    usage: Longs
    norm_shares: Doubles
    norm_usage: Longs
    effective_usage: Longs
    factor: Doubles


class FairTreeResult(Standings, frozen=True, eq=False):
    """Result of Fair Tree. `level` is Slurm's LevelFS, infinite without usage. `rank` is that of
    users, N for the best of N, and 0 for accounts, and so is `factor`.
    """

    level: Longs
    rank: Ints


def norm_usage(tree: Tree, usage: Longs) -> Longs:
    """Return the part of each row in all usage, at most 1; 0 if there is none."""
    parts: Longs = np.minimum(quotient(usage, usage[tree.root], Long), Long(1))
    return parts
