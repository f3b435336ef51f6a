"""Expected output of sshare and sprio, computed by Fairbank from the state that a real Slurm
started from.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairbank.core.slurm_numbers import ON_PARENT, STATIC_TRES
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import (
    FairTreeResult,
    ShareAssociation,
    Standings,
    Tree,
    planted,
)
from fairbank.priority.fairshare.usage import DecayedUsage
from fairbank.priority.fairshare.usage import minutes as whole_minutes
from fairbank.priority.settings import Algorithm
from fairbank.report.sprio import PriorityRow, WeightRow
from fairbank.report.sshare import ShareRow
from fairbank.slurm.fairshare_view.priorities import compute_priorities, weights_of
from fairbank.slurm.parsers.config import TRES as WEIGHED_TRES
from fairbank.slurm.parsers.config import read_config, read_settings, read_tracked_tres
from tests.slurm.frozen_cluster import Row, Said, Start, left_usage
from tests.slurm.lab.packages import release_of
from tests.slurm.random_associations import Wish
from tests.slurm.recounted_usage import NAMES, at_tick


def reckoned(there: Said, start: Start) -> tuple[Tree, Standings, DecayedUsage]:
    """The tree, the figures of each row, and their usage: of what slurmctld read and of the jobs
    that run, at its tick.
    """
    rule = read_settings(read_config(there.config)).fair_share
    tree = planted([_association(row) for row in there.associations])
    usage = at_tick(left_usage(there, start), start.counted_at, there, tree).associations
    if rule.algorithm is Algorithm.FAIR_TREE:
        return tree, fair_tree(tree, usage.raw), usage
    oblivious = rule.algorithm is Algorithm.DEPTH_OBLIVIOUS
    return (
        tree,
        classic(tree, usage.raw, dampening=rule.dampening, depth_oblivious=oblivious),
        usage,
    )


def _association(row: Row) -> ShareAssociation:
    shares = ON_PARENT if row["Share"] == "parent" else int(row["Share"])
    return ShareAssociation(
        row["Account"],
        row["User"],
        row["Partition"],
        "" if row["User"] else row["ParentName"],
        shares,
    )


# ---------------------------------------------------------------- sshare


def standings(there: Said, tree: Tree, figures: Standings, usage: DecayedUsage) -> list[ShareRow]:
    running = whole_minutes(usage.run_seconds)
    more = [
        f"{name}=0"
        for name in read_tracked_tres(read_config(there.config)).split(",")
        if name not in NAMES
    ]  # newer ones count more
    told = [
        ",".join([*(f"{name}={count}" for name, count in zip(NAMES, row, strict=True)), *more])
        for row in running
    ]
    rows = [
        _standing(tree, figures, at, row, told[at]) for at, row in enumerate(there.associations)
    ]
    # 26.05 tells no factor of accounts under the classic rules either.
    newest = release_of(read_config(there.config)["SLURM_VERSION"]) >= (26, 5)
    return [row._replace(factor=None) if newest and not row.user else row for row in rows]


def _standing(tree: Tree, figures: Standings, at: int, row: Row, running: str) -> ShareRow:
    association, root, ranked = tree.rows[at], at == tree.root, isinstance(figures, FairTreeResult)
    on_parent = association.shares == ON_PARENT
    level = (
        float(figures.level[at])
        if isinstance(figures, FairTreeResult) and not (root or on_parent)
        else None
    )
    return ShareRow(
        account=association.account,
        user=association.user,
        partition=association.partition,
        parent=association.parent,
        shares=None if root else association.shares,
        norm_shares=float(figures.norm_shares[at]),
        usage=float(np.floor(figures.usage[at])),
        norm_usage=None if root else float(figures.norm_usage[at]),
        effective=float(figures.effective_usage[at]),
        factor=float(figures.factor[at]) if association.user or not ranked else None,
        level=level,
        limits=_in_slurms_order(row["GrpTRESMins"]),
        running=running,
        cluster="lab",
        number=int(row["ID"]),
    )


def _in_slurms_order(limits: str) -> str:
    """sacctmgr tells them as an administrator wrote them down."""
    return ",".join(
        sorted(
            filter(None, limits.split(",")),
            key=lambda each: STATIC_TRES.index(each.partition("=")[0]),
        )
    )


# ---------------------------------------------------------------- sprio


def weights(there: Said) -> WeightRow:
    config = read_config(there.config)
    return weights_of(read_settings(config).factors.weights, config[WEIGHED_TRES])


def queue(
    there: Said, tree: Tree, figures: Standings, wishes: Mapping[int, Wish]
) -> list[PriorityRow]:
    """The rows of sprio: of the jobs that are neither held nor to begin later, each in each of its
    partitions.
    """
    newer = release_of(read_config(there.config)["SLURM_VERSION"]) > (22, 5)
    rows = [
        _told(job, place, wishes[_number(job)])._replace(short_zeros=newer)
        for job in there.jobs
        if _is_listed(job)
        for place in job["Partition"].split(",")
    ]
    factors = {row[:3]: float(figures.factor[at]) for at, row in enumerate(tree.rows)}
    return [row for row in rows if row.direct is not None] + compute_priorities(
        rows, there.grounds, factors, there.counted_at
    )


def _told(job: Row, place: str, wish: Wish) -> PriorityRow:
    """Return the fields that only an operator can see."""
    user = job["UserId"].partition("(")[0]
    row = PriorityRow(
        job=_number(job),
        partition_name=place,
        user=user,
        account=job["Account"],
        qos_name=job["QOS"],
    )
    return row._replace(site=wish.site) if wish.given is None else row._replace(direct=wish.given)


def _is_listed(job: Row) -> bool:
    return job["Priority"] != "0" and job["Reason"] != "BeginTime"


def _number(job: Row) -> int:
    return int(job["JobId"])
