"""Fair share computed by `priority` from shares and the usage of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairbank.core.errors import NotFound
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.result import FairTreeResult, Standings
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, planted, summed
from fairbank.report.fair_share import RankingRule
from fairbank.report.sshare import ShareRow


def with_changes(rows: Sequence[ShareRow], shares: Mapping[str, int]) -> list[ShareRow]:
    """Return the rows with other shares of some accounts.

    Raises NotFound for an unknown account.
    """
    there = {row.account for row in rows if not row.user and row.parent}
    for name in shares:
        if name not in there:
            raise NotFound(
                f"there is no account {name!r} with shares",
                field="--set",
                remedy="`fairbank share` lists the accounts",
            )
    return [
        row if row.user else row._replace(shares=shares.get(row.account, row.shares))
        for row in rows
    ]


def compute_shares(rows: Sequence[ShareRow], rule: RankingRule) -> list[ShareRow]:
    """Compute every figure of the rows from their own usage.

    Raises InvalidInput if they are no tree.
    """
    tree = planted(
        [
            ShareAssociation(
                row.account,
                row.user,
                row.partition,
                row.parent,
                1 if row.shares is None else row.shares,
            )
            for row in rows
        ]
    )
    usage = summed(tree, _own_usage(rows, tree))
    if rule.fair_tree:
        stands: Standings = fair_tree(tree, usage)
    else:
        stands = classic(
            tree, usage, dampening=rule.dampening, depth_oblivious=rule.depth_oblivious
        )
    return [_row(row, at, tree, stands) for at, row in enumerate(rows)]


def _own_usage(rows: Sequence[ShareRow], tree: Tree) -> list[float]:
    """Return the usage of each row itself.

    A user has all of it; an account what deleted users had, which Slurm leaves with it. sshare
    rounds each figure down, so an account of n rows may seem to have used up to n - 1 itself; that
    is ignored.
    """
    left, below = [row.usage for row in rows], [0] * len(rows)
    for row, above in zip(rows, tree.parent.tolist(), strict=True):
        if above >= 0:
            left[above] -= row.usage
            below[above] += 1
    return [
        row.usage if row.user else own if own >= max(count, 1) else 0
        for row, own, count in zip(rows, left, below, strict=True)
    ]


def _row(row: ShareRow, at: int, tree: Tree, stands: Standings) -> ShareRow:
    root = at == tree.root
    return row._replace(
        norm_shares=float(stands.norm_shares[at]),
        usage=float(np.floor(stands.usage[at])),
        norm_usage=None if root else float(stands.norm_usage[at]),
        effective=float(stands.effective_usage[at]),
        factor=(
            None if row.factor is None else float(stands.factor[at])
        ),  # of accounts Slurm 22.05 prints it, newer ones do not
        level=_level(row, at, stands) if not root else row.level,
    )


def _level(row: ShareRow, at: int, stands: Standings) -> float | None:
    if row.shares == ON_PARENT:
        return None
    return float(stands.level[at]) if isinstance(stands, FairTreeResult) else 0.0
