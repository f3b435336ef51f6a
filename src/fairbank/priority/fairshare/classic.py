"""Classic fair share (PriorityFlags=NO_FAIR_TREE): 2 to the power of minus usage over shares
(slurm-rules.md, "Classic fair share"; FASRC).

Effective usage charges each user a part of what siblings used. Long doubles and doubles are used
where slurmctld uses them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.columns import Doubles, Long, Longs, quotient
from fairbank.priority.fairshare.regimes import classic_factor
from fairbank.priority.fairshare.tree import Standings, Tree, norm_usage, usage_of
from fairbank.priority.settings import DAMPENING_MAX

_PULL = Long(5)
"""Strength of DEPTH_OBLIVIOUS: how much less a child can compensate for its account."""


def classic(
    tree: Tree, usage: ArrayLike, *, dampening: int = 1, depth_oblivious: bool = False
) -> Standings:
    """Return the factor of every row. Accounts have a factor like users; Slurm prints theirs blank.

    Raises InvalidInput for invalid usage and for a dampening out of range.

    Args:
        usage: usage of each row with all below it (`tree.sum_usage`), in billing-seconds.
        dampening: FairShareDampeningFactor.
        depth_oblivious: PriorityFlags=DEPTH_OBLIVIOUS.
    """
    if not 1 <= dampening <= DAMPENING_MAX:
        remedy = f"a whole number from 1 to {DAMPENING_MAX}"
        raise InvalidInput(
            f"{dampening} is not a dampening factor",
            field="FairShareDampeningFactor",
            remedy=remedy,
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
    """Return the product of the parts that each row and the accounts above it have of their
    siblings' shares, from the row upwards; 1 for the root.
    """
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
    """Return the effective usage, level by level from above. A row below the root is charged its
    own usage, and the root all.
    """
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
    """Return the usage of the rows with own shares below each account, in the order of rows."""
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
    """Return the effective usage under DEPTH_OBLIVIOUS: the deviation of the account, times the
    deviation of the row from its siblings, so that depth does not matter.

    slurmctld computes one row after the other, and uses the last known usage of later siblings. Its
    own figures follow these one tick late, and are not reliable right after its start.
    """
    used_rows = (
        (shares != 0)
        & (account_shares != 0)
        & (account_effective != 0)
        & (used != 0)
        & (siblings_used != 0)
    )
    charged = used.copy()
    own, theirs = shares[used_rows].astype(Long), account_shares[used_rows].astype(Long)
    account_off = account_effective[used_rows] / theirs
    siblings_off = siblings_used[used_rows] / theirs
    row_off = (used[used_rows] / own) / siblings_off
    pull = np.ones(len(own), Long)
    apart = np.log(account_off) * np.log(row_off) < 0
    bend = _PULL * np.log(account_off[apart])
    pull[apart] = 1 / (1 + bend * bend)
    with np.errstate(over="ignore"):  # Slurm takes this power in doubles
        bases, exponents = row_off.astype(np.float64).tolist(), pull.astype(np.float64).tolist()
    charged[used_rows] = (
        account_off * np.fromiter(map(math.pow, bases, exponents), np.float64, len(own)) * own
    )
    return charged


def _factor(shares: Doubles, effective: Longs, dampening: int) -> Doubles:
    """Return the factors, 0 without shares."""
    with np.errstate(over="ignore"):  # beyond a double is far enough beyond the share
        use = (quotient(effective, shares, Long) / dampening).astype(np.float64)
    factors = np.fromiter(map(classic_factor, use.tolist()), np.float64, len(shares))
    return np.where(shares > 0, factors, 0.0)
