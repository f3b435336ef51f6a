"""Classic fair share (PriorityFlags=NO_FAIR_TREE): 2 to the power of minus usage over shares.

Effective usage charges each user a part of what siblings used. Long doubles where slurmctld has them, doubles where it has those.

Source: docs/reference/slurm-rules.md, "Classic fair share"; FASRC.
"""

from __future__ import annotations

import math
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.columns import Doubles, Long, Longs, quotient
from fairbank.priority.fairshare.result import Standings, norm_usage
from fairbank.priority.fairshare.settings import DAMPENING_MAX
from fairbank.priority.fairshare.tree import Tree, usage_of

_PULL = Long(5)
"""How much less DEPTH_OBLIVIOUS lets a child make good what its account did wrong."""


def classic(
    tree: Tree, usage: ArrayLike, *, dampening: int = 1, depth_oblivious: bool = False
) -> Standings:
    """The factor of every row. `usage` is that of each row with all below it (`tree.summed`), in billing-seconds.

    `dampening` is FairShareDampeningFactor. Accounts have a factor as users do; Slurm prints theirs blank.
    Raises InvalidInput for usage that is none and for a dampening out of range.
    """
    if not 1 <= dampening <= DAMPENING_MAX:
        remedy = f"a whole number from 1 to {DAMPENING_MAX}"
        raise InvalidInput(
            f"{dampening} is no dampening factor", field="FairShareDampeningFactor", remedy=remedy
        )
    usage = usage_of(tree, usage)
    shares = _norm_shares(tree)
    used = norm_usage(tree, usage)
    effective = _effective(tree, shares, used, depth_oblivious=depth_oblivious)
    return Standings(
        usage=usage,
        norm_shares=shares,
        norm_usage=used,
        effective_usage=effective,
        factor=_factor(shares, effective, dampening),
    )


def _norm_shares(tree: Tree) -> Doubles:
    """The product of each row's part of its siblings' shares and those of the accounts above it, from the row upwards; 1 for the root."""
    above = tree.shape.above
    part = quotient(tree.shares, tree.shape.siblings_shares, np.float64)
    product: Doubles = np.where(tree.stands_on_parent, 1.0, part)
    product[tree.root] = 1
    rows = np.flatnonzero(above >= 0)
    at = above[rows]
    while len(rows := rows[further := above[at] >= 0]):
        at = at[further]
        product[rows] *= part[at]
        at = above[at]
    return product


def _effective(tree: Tree, shares: Doubles, used: Longs, *, depth_oblivious: bool) -> Longs:
    """Level by level from above. Who is right below the root is charged what it used, and the root all there is."""
    shape = tree.shape
    effective = used.copy()
    effective[tree.root] = 1
    on_parent = tree.stands_on_parent
    part = quotient(tree.shares, shape.siblings_shares, Long)
    siblings = _used_by_siblings(tree, used) if depth_oblivious else None
    for begin, end in zip(shape.level_begins[2:-1], shape.level_begins[3:], strict=True):
        rows = shape.row[begin:end]
        account = shape.above[rows]
        if siblings is None:
            charged = used[rows] + (effective[account] - used[rows]) * part[rows]
            charged = np.where(shape.siblings_shares[rows] == 0, effective[account], charged)
        else:
            charged = _oblivious(
                shares[rows], used[rows], shares[account], effective[account], siblings[account]
            )
        effective[rows] = np.where(on_parent[rows], effective[account], charged)
    return effective


def _used_by_siblings(tree: Tree, used: Longs) -> Longs:
    """For each account what those below it used that have shares of their own, added in the order of the rows."""
    sums = np.zeros(len(used), Long)
    rows = np.flatnonzero((tree.shape.above >= 0) & ~tree.stands_on_parent)
    np.add.at(sums, tree.shape.above[rows], used[rows])
    return sums


def _oblivious(
    shares: Doubles,
    used: Longs,
    account_shares: Doubles,
    account_effective: Longs,
    siblings_used: Longs,
) -> Longs:
    """DEPTH_OBLIVIOUS: how far the account is off, times how far the row is off beside its siblings, so that depth does not matter.

    slurmctld works out one row after the other, and of siblings that come later it has what they used when it last looked: its own figures
    follow these a tick late, and right after its start they are not to be trusted.
    """
    known = (
        (shares != 0)
        & (account_shares != 0)
        & (account_effective != 0)
        & (used != 0)
        & (siblings_used != 0)
    )
    charged = used.copy()
    own, theirs = shares[known].astype(Long), account_shares[known].astype(Long)
    account_off = account_effective[known] / theirs
    siblings_off = siblings_used[known] / theirs
    row_off = (used[known] / own) / siblings_off
    pull = np.ones(len(own), Long)
    apart = np.log(account_off) * np.log(row_off) < 0
    bend = _PULL * np.log(account_off[apart])
    pull[apart] = 1 / (1 + bend * bend)
    with np.errstate(over="ignore"):  # Slurm takes this power in doubles
        bases, exponents = row_off.astype(np.float64).tolist(), pull.astype(np.float64).tolist()
    charged[known] = (
        account_off * np.fromiter(map(math.pow, bases, exponents), np.float64, len(own)) * own
    )
    return charged


def _factor(shares: Doubles, effective: Longs, dampening: int) -> Doubles:
    """2 ** -(effective / shares / dampening), and 0 without shares.

    The power is the C library's, as in slurmctld: NumPy's own differs from it in the last bit on some processors.
    """
    with np.errstate(over="ignore"):  # beyond a double is far enough beyond the share
        exponent = (-quotient(effective, shares, Long) / dampening).astype(np.float64)
    power = np.fromiter(map(math.pow, repeat(2.0), exponent.tolist()), np.float64, len(shares))
    return np.where(shares > 0, power, 0.0)
