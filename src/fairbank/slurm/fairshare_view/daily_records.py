"""Fair share of all associations on one day, as the bank stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any

from fairbank.core.errors import InvalidInput
from fairbank.core.slurm_numbers import ON_PARENT
from fairbank.report.fair_share import RankingRule, level_of
from fairbank.report.sshare import ShareRow


def daily_records(
    cluster: str | None, rows: Sequence[ShareRow], rule: RankingRule
) -> list[Mapping[str, Any]]:
    """Return the records for the bank. Raises InvalidInput if they would be no history.

    That is without a name, without rows, or with figures that are not finite.

    Args:
        cluster: its name.
        rows: of all associations.
        rule: that ranks them.
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
    return list(_rows(rows, rule))


def _rows(rows: Sequence[ShareRow], rule: RankingRule) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        _check(row)
        level = level_of(row, rule)
        yield {
            "account": row.account,
            "user": row.user or None,
            "partition": row.partition or None,
            "shares": "parent" if row.shares == ON_PARENT else row.shares,
            "norm_shares": row.norm_shares,
            "usage": row.usage,
            "effective": row.effective,
            "level": None if level is None or level == inf else level,
            "factor": row.factor,
        }


def _check(row: ShareRow) -> None:
    figures = {
        "NormShares": row.norm_shares,
        "RawUsage": row.usage,
        "EffectvUsage": row.effective,
        "FairShare": row.factor,
    }
    for name, figure in figures.items():
        if figure is not None and not isfinite(figure):
            owner = (
                f"user {row.user} of account {row.account}"
                if row.user
                else f"account {row.account}"
            )
            raise InvalidInput(
                f"{owner} has {figure}",
                field=name,
                remedy="a finite number is required; check what sshare prints",
            )
