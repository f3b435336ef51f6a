"""Limits that end running jobs. They do so only if limits are enforced without `safe`
(slurm-rules.md, "Limits").

Next user: the embedded workload manager.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind
from fairbank.priority.limits.usage import (
    AssociationLimits,
    LimitedJob,
    LimitHold,
    LimitUsage,
    in_order,
)

REASON = "TimeLimit"
"""Reason of every job that is ended so. Its state is TIMEOUT."""


def ending(job: LimitedJob, run_minutes: int, enforced: Enforced) -> LimitHold | None:
    """Return the limit that ends a job after `run_minutes`, or None.

    The minutes or wall time of a group are used up, or the job has taken more than its own minutes.
    Limits of root end nothing, though they hold jobs.
    """
    return next(_endings(job, run_minutes), None) if enforced.limits and not enforced.safe else None


def _endings(job: LimitedJob, run_minutes: int) -> Iterator[LimitHold]:
    places = [(QOS, qos.name, qos.limits, qos.used, True) for qos in job.qoses()]
    below_root = job.chain[:-1] if len(job.chain) > 1 else job.chain
    places += [
        (ASSOC, found.name, found.limits, found.used, level == 0)
        for level, found in enumerate(below_root)
    ]
    own = {name: run_minutes * count + 1 for name, count in job.counts.items() if count}
    taken: set[tuple[LimitKind, str]] = set()
    for owner, name, limits, used, whole in places:
        found = list(_used_up(limits, used, own, whole=whole))
        for kind, tres, limit, amount, over in found:
            if over and (kind, tres or "") not in taken:
                yield LimitHold(
                    owner=owner,
                    name=name,
                    kind=kind,
                    tres=tres,
                    limit=limit,
                    used=amount,
                    asked=own.get(tres or "", 0),
                )
        if owner == QOS:
            taken |= {(kind, tres or "") for kind, tres, *_ in found}


def _used_up(
    limits: AssociationLimits, used: LimitUsage, own: dict[str, int], *, whole: bool
) -> Iterator[tuple[LimitKind, str | None, int, int, bool]]:
    """Yield each limit that can end a job: kind, TRES, limit, used amount, and True if that is too
    much.
    """
    minutes, wall = used.minutes(), used.wall_minutes()
    for name, limit in in_order(limits.tres.get(LimitKind.GRP_TRES_MINS, {})):
        yield (
            LimitKind.GRP_TRES_MINS,
            name,
            limit,
            minutes.get(name, 0),
            name in own and minutes.get(name, 0) >= limit,
        )
    if (limit := limits.wall.get(LimitKind.GRP_WALL, -1)) >= 0:
        yield LimitKind.GRP_WALL, None, limit, wall, wall >= limit
    if whole:
        for name, limit in in_order(limits.tres.get(LimitKind.MAX_TRES_MINS, {})):
            yield LimitKind.MAX_TRES_MINS, name, limit, own.get(name, 0), own.get(name, 0) > limit
