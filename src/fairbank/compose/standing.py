"""Fair share and priorities as Slurm tells them, as the rows that are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairbank.report.priorities import Rank, Weights
from fairbank.report.shares import PARENT, Standing
from fairbank.slurm.answers import shares

if TYPE_CHECKING:
    from fairbank.slurm.answers.priority import Settings
    from fairbank.slurm.answers.shares import Share
    from fairbank.slurm.answers.sprio import Factors


def standing_of(row: Share) -> Standing:
    return Standing(
        account=row.account,
        user=row.user,
        partition=row.partition,
        parent=row.parent,
        shares=PARENT if row.shares == shares.PARENT else row.shares if isinstance(row.shares, int) else None,
        norm_shares=row.norm_shares,
        usage=row.usage,
        norm_usage=row.norm_usage,
        effective=row.effective,
        factor=row.factor,
        level=row.level,
        limits=row.limits,
        used=row.used,
        running=row.running,
        cluster=row.cluster,
        number=row.number,
    )


def weights_of(settings: Settings) -> Weights:
    return Weights(
        age=settings.age,
        association=settings.association,
        fair_share=settings.fair_share,
        size=settings.size,
        place=settings.partition,
        qos=settings.qos,
        tres=settings.tres,
        tres_text=settings.tres_text,
    )


def rank_of(row: Factors, weights: Weights, accounts: Mapping[int, tuple[str, str]] | None = None) -> Rank:
    """Each factor with the seven digits that sprio prints. `accounts` are the jobs' accounts and QOS, where they are known."""
    account, qos_name = (accounts or {}).get(row.job, ("", ""))
    return Rank(
        job=row.job,
        partition=row.partition,
        user=row.user,
        account=account,
        qos_name=qos_name,
        cluster=row.cluster,
        age=row.normal["a"] * weights.age,
        association=row.normal["b"] * weights.association,
        fair_share=row.normal["f"] * weights.fair_share,
        size=row.normal["j"] * weights.size,
        place=row.normal["p"] * weights.place,
        qos=row.normal["q"] * weights.qos,
        tres=row.tres,
        site=row.site,
        nice=row.nice,
        direct=row.priority if row.given else None,
        total=row.total,
    )
