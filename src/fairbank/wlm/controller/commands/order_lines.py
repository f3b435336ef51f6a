"""Priorities and shares of the core as sprio and sshare show them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairbank.core.errors import Conflict
from fairbank.priority.fairshare.tree import FairTreeResult, Tree
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import LimitUsage
from fairbank.priority.settings import PrioritySettings
from fairbank.report.slurm.sprio import PriorityRow
from fairbank.report.slurm.sshare import ShareRow
from fairbank.wlm.core.accounts import DEFAULT_QOS
from fairbank.wlm.core.factors.priorities import factor_terms, fair_shares
from fairbank.wlm.core.factors.usage import TRES, used_associations
from fairbank.wlm.core.jobs import AssociationUsage, Moment
from fairbank.wlm.core.snapshot import queue_limits
from fairbank.wlm.core.state import CoreState


def priority_lines(state: CoreState, now: Moment) -> Iterator[PriorityRow]:
    """Yield the priorities of eligible jobs, by number. Raises Conflict without factors."""
    settings = _settings(state)
    jobs = [
        job
        for _, job in sorted(state.jobs.items())
        if job.state.base == "PENDING" and job.is_eligible(now.wall)
    ]
    entries, terms = factor_terms(state, settings.factors, jobs, now.wall)
    names = [*settings.factors.weights.tres]
    for at, (job, partition) in enumerate(entries):
        request = job.request
        tres = {name: float(column[at]) for name, column in zip(names, terms.tres, strict=True)}
        yield PriorityRow(
            job=job.number,
            partition_name=partition,
            user=request.user,
            account=request.account,
            qos_name=request.qos or DEFAULT_QOS,
            cluster=state.settings.cluster.cluster_name,
            age=float(terms.age[at]),
            association=float(terms.association[at]),
            fair_share=float(terms.fairshare[at]),
            job_size=float(terms.job_size[at]),
            partition=float(terms.partition[at]),
            qos=float(terms.qos[at]),
            tres={name: value for name, value in tres.items() if value},
            site=job.submission.site_factor,
            nice=job.submission.nice,
            direct=request.priority if job.has_fixed_priority else None,
            submitted=request.submitted,
        )


def share_lines(state: CoreState, now: Moment) -> Iterator[ShareRow]:
    """Yield the shares of associations, an account before what is below it.

    Raises Conflict without factors.
    """
    _settings(state)
    tree, standings = fair_shares(state)
    limits, records = queue_limits(state, now), used_associations(state)
    levels = standings.level.tolist() if isinstance(standings, FairTreeResult) else None
    for at in rows_in_order(tree):
        row = tree.rows[at]
        is_root, is_on_parent = at == tree.root, bool(tree.stands_on_parent[at])
        level = None if levels is None or is_root or is_on_parent else float(levels[at])
        record = records.get((row.account, row.user, row.partition))
        used = LimitUsage() if record is None else limits.association_usage(record)
        group = {} if record is None else record.limits.tres.get(LimitKind.GRP_TRES_MINS, {})
        yield ShareRow(
            account=row.account,
            user=row.user,
            partition=row.partition,
            shares=None if is_root else int(tree.shares[at]),
            norm_shares=float(standings.norm_shares[at]),
            usage=float(standings.usage[at]),
            effective=float(standings.effective_usage[at]),
            level=level,
            factor=float(standings.factor[at]) if row.user else None,
            cluster=state.settings.cluster.cluster_name,
            parent="" if is_root or row.user else tree.rows[tree.parent[at]].account,
            norm_usage=None if is_root else float(standings.norm_usage[at]),
            limits=_pairs(group),
            used=_pairs(used.minutes(), TRES),
            running=_pairs(used.run_minutes(), TRES),
            number=at + 1,
            wall=used.wall_seconds / 60,
        )


def qos_usage_fields(state: CoreState, now: Moment) -> dict[str, dict[str, Any]]:
    """Return the fields of a QosLine with usage, by QOS; as in the lines of shares."""
    limits, usage = queue_limits(state, now), {}
    for name in state.settings.accounting.qos:
        used, nothing = limits.qos_usage(name), AssociationUsage()
        usage[name] = {
            "usage": state.qos_usage.get(name, nothing).billing,
            "wall": used.wall_seconds / 60,
            "used": _pairs(used.minutes(), TRES),
            "running": _pairs(used.run_minutes(), TRES),
        }
    return usage


def _pairs(amounts: Mapping[str, int], names: Iterable[str] = ()) -> str:
    """Return amounts as Slurm writes them, with 0 of the names of which there is nothing."""
    every = {**dict.fromkeys(names, 0), **amounts}
    return ",".join(f"{name}={amount}" for name, amount in every.items())


def rows_in_order(tree: Tree) -> Iterator[int]:
    """Yield the rows of a tree, each account before what is below it."""
    below = defaultdict[int, list[int]](list)
    for row, parent in enumerate(tree.parent.tolist()):
        below[parent].append(row)
    waiting = [tree.root]
    while waiting:
        row = waiting.pop()
        waiting += reversed(below[row])
        yield row


def _settings(state: CoreState) -> PrioritySettings:
    if not state.settings.priority.by_factors:
        raise Conflict(
            "jobs start in the order of their submission: there are no factors",
            field="PriorityType",
            remedy='set priority_type = "priority/multifactor" in wlm.toml',
        )
    return state.settings.priority
