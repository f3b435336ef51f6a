"""Fair share of associations: rows of sshare to show, computed again, and as the bank stores them;
the rule that ranks users, and the times of recovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from math import inf, isfinite
from typing import Any

import numpy as np

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.decay import Decay, next_reset
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.forecast import Standpoint, back_after, level_after
from fairbank.priority.fairshare.regimes import RankingRule, level_of
from fairbank.priority.fairshare.tree import (
    FairTreeResult,
    ShareAssociation,
    Standings,
    Tree,
    build_tree,
    sum_usage,
)
from fairbank.priority.settings import Algorithm, FairShare, MultifactorSettings
from fairbank.report.share_forecast import LevelAfter, Recovery
from fairbank.report.slurm.sprio import FACTORS
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.fairshare_view.priorities import weights_of

RANKED_USERS_MAX = 500_000
"""Users up to which ranks differ in the six digits that sshare prints."""


def share_rows(rows: Sequence[ShareRow], *, fair_tree: bool) -> list[ShareRow]:
    """Return the rows of sshare with the exact factors of Fair Tree.

    Fair Tree's factor is a rank divided by the number of users, so all its digits follow from the
    six that sshare prints. If that gives other digits, sshare hides some users from us, and the
    factors stay as they are.
    """
    users = sum(1 for row in rows if row.user)
    if not fair_tree or users > RANKED_USERS_MAX:
        return list(rows)
    exact = [
        row.factor if row.factor is None else round(row.factor * users) / users for row in rows
    ]
    if any(
        row.factor is not None and f"{row.factor:f}" != f"{factor:f}"
        for row, factor in zip(rows, exact, strict=True)
    ):
        return list(rows)
    return [row._replace(factor=factor) for row, factor in zip(rows, exact, strict=True)]


def ranking_rule(
    settings: FairShare, now: int, zone: tzinfo, factors: MultifactorSettings | None = None
) -> RankingRule:
    """Return the rule; slurmctld's local time `zone` decides when usage is reset.

    Args:
        settings: the settings of fair share.
        now: time in seconds since 1970.
        zone: time zone of slurmctld.
        factors: settings of priorities; None if their weights are unknown.
    """
    reset = next_reset(settings.reset, now, zone)
    return RankingRule(
        settings.algorithm is Algorithm.FAIR_TREE,
        settings.half_life_seconds,
        settings.dampening,
        settings.algorithm is Algorithm.DEPTH_OBLIVIOUS,
        None if reset is None else reset - now,
        None if factors is None else _by_weight(factors),
    )


def _by_weight(factors: MultifactorSettings) -> Mapping[str, float]:
    """Return the weights of the factors that count, the largest first."""
    weights = weights_of(factors.counted, "")
    counted = {factor.field: float(factor.weight(weights)) for factor in FACTORS}
    counted |= weights.tres
    positive = [(name, weight) for name, weight in counted.items() if weight]
    return dict(sorted(positive, key=lambda pair: -pair[1]))


def recovery_times(rows: Sequence[ShareRow], rule: RankingRule) -> list[Recovery]:
    """Return the recovery times in the order of the rows (`priority.fairshare.forecast`)."""
    decay = Decay(rule.half_life)
    recoveries: list[Recovery] = []
    for row, standpoint in _standpoints(rows, rule):
        recovery = back_after(standpoint, decay, level=rule.target_level, reset_in=rule.reset_in)
        level = _level_now(row, standpoint, rule)
        recoveries.append(Recovery(row.account, row.user, row.partition, level, *recovery))
    return recoveries


def levels_after(
    rows: Sequence[ShareRow], rule: RankingRule, pause: int, run: int
) -> list[LevelAfter]:
    """Return the levels after a pause and then a run, of the same associations.

    Args:
        rows: all associations.
        rule: the rule that ranks users.
        pause: its length in seconds.
        run: its usage in billing-seconds.
    """
    decay, bases = Decay(rule.half_life), _usage_of_bases(rows, rule)
    levels: list[LevelAfter] = []
    for row, standpoint in _standpoints(rows, rule):
        # In billing-seconds, as the run is; they have more digits than the parts of it.
        whole = bases[row.account if row.user else row.parent]
        used = min(row.usage, whole)
        after = level_after(
            Standpoint(
                usage=used,
                others=whole - used,
                share=standpoint.share,
                charged=min(standpoint.charged * whole, whole - used),
            ),
            decay,
            pause=pause,
            run=run,
            reset_in=rule.reset_in,
        )
        level = _level_now(row, standpoint, rule)
        levels.append(LevelAfter(row.account, row.user, row.partition, level, *after))
    return levels


def _level_now(row: ShareRow, standpoint: Standpoint, rule: RankingRule) -> float:
    level = level_of(row, rule)
    return standpoint.level if level is None else level


def _standpoints(
    rows: Sequence[ShareRow], rule: RankingRule
) -> Iterator[tuple[ShareRow, Standpoint]]:
    """Yield the associations with a level, in the order of the rows.

    Left out are the root, and under Fair Tree those on their parent's shares. With DEPTH_OBLIVIOUS,
    so are those that are not right below the root, because their figures are no simple part of the
    usage.
    """
    root = next((row for row in rows if not row.user and not row.parent), None)
    if root is None:
        return
    for row in rows:
        below_root = root.account == (row.account if row.user else row.parent)
        on_parent = rule.fair_tree and row.shares == ON_PARENT
        if row is root or on_parent or (rule.depth_oblivious and not below_root):
            continue
        yield row, _among_siblings(row) if rule.fair_tree else _among_all(row, root)


def _usage_of_bases(rows: Sequence[ShareRow], rule: RankingRule) -> dict[str, float]:
    """Return by account the usage that the levels of those below it are parts of: all of it, or
    under Fair Tree that of the account, or of the next one above with shares of its own.
    """
    usage: dict[str, float] = {}
    for row in rows:  # from above
        if not row.user:
            is_own = rule.fair_tree and row.shares != ON_PARENT
            usage[row.account] = row.usage if is_own else usage.get(row.parent, row.usage)
    return usage


def _among_siblings(row: ShareRow) -> Standpoint:
    """Return the standpoint in the usage of siblings, those below the next account with shares."""
    used = min(row.effective or 0.0, 1.0)
    return Standpoint(usage=used, others=1 - used, share=row.norm_shares)


def _among_all(row: ShareRow, root: ShareRow) -> Standpoint:
    """Return the standpoint as a part of all usage.

    Raw usage has more printed digits than its part.
    """
    used = min(row.usage / root.usage, 1.0) if root.usage else 0.0
    charged = (row.effective or 0.0) - (row.norm_usage or 0.0)
    return Standpoint(
        usage=used, others=1 - used, share=row.norm_shares, charged=min(max(charged, 0.0), 1 - used)
    )


# --- computed again ---


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
    tree = build_tree(
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
    usage = sum_usage(tree, _own_usage(rows, tree))
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
    level = row.level if root else 0.0
    if not root and isinstance(stands, FairTreeResult):
        level = float(stands.level[at])
    return row._replace(
        norm_shares=float(stands.norm_shares[at]),
        usage=float(np.floor(stands.usage[at])),
        norm_usage=None if root else float(stands.norm_usage[at]),
        effective=float(stands.effective_usage[at]),
        # Slurm 22.05 prints the factors of accounts, newer ones do not.
        factor=None if row.factor is None else float(stands.factor[at]),
        level=None if not root and row.shares == ON_PARENT else level,
    )


# --- records for the bank ---


def daily_records(
    cluster: str | None, rows: Sequence[ShareRow], rule: RankingRule
) -> list[Mapping[str, Any]]:
    """Return the records for the bank. Raises InvalidInput if they would be no history.

    That is without a name, without rows, or with figures that are not finite.

    Args:
        cluster: its name.
        rows: the rows of all associations.
        rule: the rule that ranks them.
    """
    if not cluster:
        raise InvalidInput(
            "this Slurm has no name", field="ClusterName", remedy="set it in slurm.conf"
        )
    if not rows:
        raise InvalidInput(
            "there is no association whose fair share could be recorded",
            field="sshare",
            remedy="check what it prints: sshare -a",
        )
    if len({(row.account, row.user, row.partition) for row in rows}) < len(rows):
        raise InvalidInput(
            "an association is listed twice", field="sshare", remedy="ask one cluster, without -M"
        )
    return [_record(row, rule) for row in rows]


def _record(row: ShareRow, rule: RankingRule) -> Mapping[str, Any]:
    figures = {
        "NormShares": row.norm_shares,
        "RawUsage": row.usage,
        "EffectvUsage": row.effective,
        "FairShare": row.factor,
    }
    for name, figure in figures.items():
        if figure is not None and not isfinite(figure):
            account = f"account {row.account}"
            owner = f"user {row.user} of {account}" if row.user else account
            raise InvalidInput(
                f"{owner} has {figure}",
                field=name,
                remedy="a finite number is required; check what sshare prints",
            )
    level = level_of(row, rule)
    return {
        "account": row.account,
        "user": row.user or None,
        "partition": row.partition or None,
        "shares": row.shown_shares,
        "norm_shares": row.norm_shares,
        "usage": row.usage,
        "effective": row.effective,
        "level": None if level == inf else level,
        "factor": row.factor,
    }
