"""Usage ledgers as Slurm keeps them: one job, association and TRES after the other, in scalars.
Slow, but easy to compare with docs/reference/slurm-rules.md, "Usage".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

Long = np.longdouble


@dataclass
class Owner:
    """Association or QOS."""

    tres: int
    parent: Owner | None = None
    keeps: bool = False
    raw: np.longdouble = field(default_factory=lambda: Long(0))
    wall: float = 0.0
    used: list[np.longdouble] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.used = [Long(0)] * self.tres

    def fade(self, left: float) -> None:
        if self.keeps:
            return
        self.raw = self.raw * Long(left)
        self.wall = self.wall * left
        self.used = [amount * Long(left) for amount in self.used]


@dataclass
class Work:
    """Job."""

    association: Owner
    qos: Owner | None
    partition_qos: Owner | None
    factor: float
    start: int
    billable: float
    alloc: list[int]

    def owners(self) -> list[Owner]:
        """Return all associations and QOS that are charged."""
        result = [qos for qos in (self.qos, self.partition_qos) if qos is not None]
        if len(result) == 2 and result[0] is result[1]:
            result.pop()
        above: Owner | None = self.association
        while above is not None:
            result.append(above)
            above = above.parent
        return result


def charge(work: Work, last: int, now: int, half_life: int) -> None:
    """Charge the job's use in (last, now]."""
    run = max(0, now - max(last, work.start))
    left = run * math.pow(1 - 0.693 / half_life if half_life else 1.0, run)
    for owner in work.owners():
        time = float(run) if owner.keeps else left
        owner.raw = owner.raw + Long(time * work.billable * work.factor)
        owner.wall = owner.wall + time * work.factor
        for place, count in enumerate(work.alloc):
            owner.used[place] = owner.used[place] + Long(time * work.factor) * Long(count)


def tick(owners: list[Owner], running: list[Work], last: int, now: int, half_life: int) -> None:
    """Decay all usage, then charge each job."""
    left = math.pow(1 - 0.693 / half_life, now - last) if half_life else 1.0
    for owner in owners:
        owner.fade(left)
    for work in running:
        charge(work, last, now, half_life)
