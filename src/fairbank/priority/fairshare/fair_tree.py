"""Fair Tree: ranks users by descending the tree, the account furthest below its share first.

This is what slurmctld computes, ties included, not what its documentation says: that the users of
accounts with equal levels are ranked together. They are not, in any release (slurm-rules.md, "Fair
Tree"). Accounts are visited one after the other, and the best user of the second gets the last rank
that was given inside the first.

The visit needs no recursion. The number of users before a user follows from the number of users
below each of its elder siblings, and below those of each account above it: this is its turn. A user
that does not tie takes the rank of its turn. A user that ties gets the last rank taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from fairbank.priority.fairshare.columns import Bools, Doubles, Ints, Long, Longs, quotient
from fairbank.priority.fairshare.tree import (
    NO_LEVEL,
    FairTreeResult,
    Shape,
    Tree,
    norm_usage,
    usage_of,
)

# The bits of doubles of 0 and more are in the order of the doubles.
_INFINITE = np.float64(np.inf).view(np.int64)


def fair_tree(tree: Tree, usage: ArrayLike) -> FairTreeResult:
    """Rank every user of the tree. Raises InvalidInput for invalid usage.

    Args:
        usage: usage of each row with all below it (`tree.sum_usage`), in billing-seconds.
    """
    usage = usage_of(tree, usage)
    shares = _norm_shares(tree)
    effective = _part_of_account(tree, usage)
    level = _level(tree, shares, effective)
    rank = _ranks(tree, level)
    return FairTreeResult(
        usage=usage,
        norm_shares=shares,
        norm_usage=norm_usage(tree, usage),
        effective_usage=effective,
        factor=rank / max(1, tree.shape.users_in_all),
        level=level,
        rank=rank,
    )


def _norm_shares(tree: Tree) -> Doubles:
    """Return the part of each row in its siblings' shares; that of the account above for a row on
    its parent's shares; 0 for the root.
    """
    own = quotient(tree.shares, tree.shape.siblings_shares, np.float64)
    shares: Doubles = np.where(tree.stands_on_parent, own[tree.shape.above], own)
    shares[tree.root] = 0
    return shares


def _part_of_account(tree: Tree, usage: Longs) -> Longs:
    """Return the part of each row in the usage of the account above; 1 for the root."""
    parts: Longs = quotient(usage, usage[tree.shape.above], Long)
    parts[tree.root] = 1
    return parts


def _level(tree: Tree, shares: Doubles, used: Longs) -> Longs:
    """Return shares over usage, as long doubles: 0 without shares, infinite without usage."""
    with np.errstate(divide="ignore", invalid="ignore"):
        level: Longs = shares.astype(Long) / used
    level[shares == 0] = 0
    on_parent = tree.stands_on_parent
    level[on_parent] = np.where(tree.is_user[on_parent], Long(np.inf), NO_LEVEL)
    level[tree.root] = NO_LEVEL
    return level


def _ranks(tree: Tree, level: Longs) -> Ints:
    """Return the rank of each user, N for the best of N, and 0 for accounts."""
    shape = tree.shape
    by_place = level[shape.row]
    visited = _best_first(by_place, shape)
    tied, turn = _visit(visited, by_place[visited], shape)
    rows = shape.row[visited]
    users = np.flatnonzero(tree.is_user[rows])
    turns = turn[users]
    ties = np.empty(len(users), np.bool_)
    ties[turns] = tied[users]
    best_of_tie = np.maximum.accumulate(np.where(ties, 0, np.arange(len(users))))
    rank = np.zeros(len(level), np.int64)
    rank[rows[users]] = len(users) - best_of_tie[turns]
    return rank


def _best_first(level: Longs, shape: Shape) -> Ints:
    """Return the places by level within each group. Equal levels keep their order: users first,
    then as rows were given.

    The sort key has the group and as much of the level as fits into 63 bits. `_put_right` then
    sorts what the key leaves open.
    """
    bits = 63 - int(shape.group[-1]).bit_length()
    with np.errstate(over="ignore"):  # beyond a double is infinite for the moment
        downwards = _INFINITE - level.astype(np.float64).view(np.int64)
    key = (shape.group << bits) | (downwards >> (63 - bits))
    visited = np.argsort(key, kind="stable")
    return _put_right(visited, key[visited], level[visited])


def _put_right(visited: Ints, key: Ints, level: Longs) -> Ints:
    """Sort by the whole level the places whose keys are equal and whose levels are not in order."""
    same = key[1:] == key[:-1]
    wrong = np.flatnonzero(same & (level[1:] > level[:-1]))
    if len(wrong):
        run = np.concatenate(([0], np.cumsum(~same)))
        at = np.flatnonzero(np.isin(run, run[wrong]))
        visited[at] = visited[at][np.lexsort((-level[at], run[at]))]
    return visited


def _visit(visited: Ints, level: Longs, shape: Shape) -> tuple[Bools, Ints]:
    """Return for each place whether it ties with the one visited before, and how many users come
    before it, in the order of `visited`.
    """
    place_in_visit = np.empty_like(visited)
    place_in_visit[visited] = np.arange(len(visited))
    users = shape.users[visited]
    before = np.cumsum(users) - users
    turn = before - before[shape.begin]
    is_first = shape.begin == np.arange(len(visited))
    # The first is compared with this number, in Slurm too.
    tied = level == np.where(is_first, NO_LEVEL, np.roll(level, 1))
    tied[0] = False
    for begin, end in zip(shape.level_begins[1:-1], shape.level_begins[2:], strict=True):
        account = place_in_visit[shape.up[begin:end]]
        turn[begin:end] += turn[account]
        tied[begin:end] |= is_first[begin:end] & tied[account]
    return tied, turn


class EqualShares:
    """Users of one account with one share each. Usage is a finite double of 0 or more."""

    def __init__(self, used: Iterable[float]) -> None:
        self._used = sorted(used)

    def factor(self, used: float) -> float:
        """Return the fair-share factor of a user with this usage. The user who used least has 1."""
        return (len(self._used) - bisect_left(self._used, used)) / len(self._used)
