"""Running jobs that a limit ends: only where limits are enforced and jobs are not kept safe from it.

Source: docs/reference/slurm-rules.md, "Limits".
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
"""Of every job that is ended so; its state is TIMEOUT."""


def ending(job: LimitedJob, run_minutes: int, enforced: Enforced) -> LimitHold | None:
    """The limit for which a job that has run `run_minutes` is to end, or None.

    A group's minutes or wall time are used up, or the job's own minutes are past what it may take. Root ends nothing, though it holds.
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
    """Each limit that can end a job: its kind, TRES, amount; what is used; whether that is too much."""
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
