"""Expected output of sshare and sprio, computed by Fairbank from the state that slurmctld started
from.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairbank.core.slurm_numbers import ON_PARENT, STATIC_TRES
from fairbank.priority.fairshare.classic import classic
from fairbank.priority.fairshare.columns import Wholes
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import (
    FairTreeResult,
    ShareAssociation,
    Standings,
    Tree,
    build_tree,
)
from fairbank.priority.settings import Algorithm
from fairbank.report.slurm.sprio import PriorityRow, WeightRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.slurm.fairshare_view.priorities import compute_priorities, weights_of
from fairbank.slurm.parsers.config import TRES as WEIGHED_TRES
from fairbank.slurm.parsers.config import read_config, read_settings, read_tracked_tres
from tests.slurm.frozen_cluster import Row, SlurmState, StartState, left_usage
from tests.slurm.lab.packages import release_of
from tests.slurm.random_associations import PlannedJob
from tests.slurm.recounted_usage import NAMES, at_tick, reserved_minutes


def compute_shares(state: SlurmState, start: StartState) -> tuple[Tree, Standings, Wholes]:
    """Return the tree, the fair-share result with the usage of running jobs, and what these may
    still use, at slurmctld's tick.
    """
    rule = read_settings(read_config(state.config)).fair_share
    tree = build_tree([_association(row) for row in state.associations])
    usage = at_tick(left_usage(state, start), start.counted_at, state, tree).associations
    reserved = reserved_minutes(start.counted_at, state, tree)
    if rule.algorithm is Algorithm.FAIR_TREE:
        return tree, fair_tree(tree, usage.raw), reserved
    oblivious = rule.algorithm is Algorithm.DEPTH_OBLIVIOUS
    figures = classic(tree, usage.raw, dampening=rule.dampening, depth_oblivious=oblivious)
    return tree, figures, reserved


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


def expected_shares(
    state: SlurmState, tree: Tree, figures: Standings, reserved: Wholes
) -> list[ShareRow]:
    more = [
        f"{name}=0"
        for name in read_tracked_tres(read_config(state.config)).split(",")
        if name not in NAMES
    ]  # newer releases count more TRES
    running_tres = [
        ",".join([*(f"{name}={count}" for name, count in zip(NAMES, row, strict=True)), *more])
        for row in reserved
    ]
    rows = [
        _expected_share(tree, figures, index, row, running_tres[index])
        for index, row in enumerate(state.associations)
    ]
    # 25.11 and 26.05 print no factor of accounts under the classic rules either.
    newest = release_of(read_config(state.config)["SLURM_VERSION"]) >= (25, 11)
    return [row._replace(factor=None) if newest and not row.user else row for row in rows]


def _expected_share(tree: Tree, figures: Standings, index: int, row: Row, running: str) -> ShareRow:
    association, root, ranked = (
        tree.rows[index],
        index == tree.root,
        isinstance(figures, FairTreeResult),
    )
    on_parent = association.shares == ON_PARENT
    level = (
        float(figures.level[index])
        if isinstance(figures, FairTreeResult) and not (root or on_parent)
        else None
    )
    return ShareRow(
        account=association.account,
        user=association.user,
        partition=association.partition,
        parent=association.parent,
        shares=None if root else association.shares,
        norm_shares=float(figures.norm_shares[index]),
        usage=float(np.floor(figures.usage[index])),
        norm_usage=None if root else float(figures.norm_usage[index]),
        effective=float(figures.effective_usage[index]),
        factor=float(figures.factor[index]) if association.user or not ranked else None,
        level=level,
        limits=_in_slurms_order(row["GrpTRESMins"]),
        running=running,
        cluster="lab",
        number=int(row["ID"]),
    )


def _in_slurms_order(limits: str) -> str:
    """Sort limits: sacctmgr prints them in the order in which they were set."""
    return ",".join(
        sorted(
            filter(None, limits.split(",")),
            key=lambda limit: STATIC_TRES.index(limit.partition("=")[0]),
        )
    )


# ---------------------------------------------------------------- sprio


def weights(state: SlurmState) -> WeightRow:
    config = read_config(state.config)
    return weights_of(read_settings(config).factors.weights, config[WEIGHED_TRES])


def expected_priorities(
    state: SlurmState, tree: Tree, figures: Standings, planned: Mapping[int, PlannedJob]
) -> list[PriorityRow]:
    """Return the rows of sprio: one for each partition of each pending job that is neither held nor
    has a later begin time.
    """
    newer = release_of(read_config(state.config)["SLURM_VERSION"]) > (22, 5)
    rows = [
        _operator_fields(job, partition, planned[_number(job)])._replace(short_zeros=newer)
        for job in state.jobs
        if _is_listed(job)
        for partition in job["Partition"].split(",")
    ]
    factors = {row[:3]: float(figures.factor[index]) for index, row in enumerate(tree.rows)}
    return [row for row in rows if row.direct is not None] + compute_priorities(
        rows, state.priority_inputs, factors, state.counted_at
    )


def _operator_fields(job: Row, partition: str, planned: PlannedJob) -> PriorityRow:
    """Return the fields that only an operator can see."""
    user = job["UserId"].partition("(")[0]
    row = PriorityRow(
        job=_number(job),
        partition_name=partition,
        user=user,
        account=job["Account"],
        qos_name=job["QOS"],
    )
    return (
        row._replace(site=planned.site)
        if planned.priority is None
        else row._replace(direct=planned.priority)
    )


def _is_listed(job: Row) -> bool:
    return job["Priority"] != "0" and job["Reason"] != "BeginTime"


def _number(job: Row) -> int:
    return int(job["JobId"])
