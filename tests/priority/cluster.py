"""Small cluster and its jobs, for the tests of priorities."""

from __future__ import annotations

from typing import Any

from fairbank.core.time import DAY
from fairbank.priority.multifactor.combination import priorities
from fairbank.priority.multifactor.pending_jobs import FactorScale, PendingColumns, pending, scale
from fairbank.priority.settings import MultifactorSettings, PriorityWeights

NOW = 1_700_000_000
WEEK = 7 * DAY
MEMORY = 655_360
WEIGHTS = PriorityWeights(
    age=1_000,
    fairshare=10_000,
    job_size=500,
    partition=1_000,
    qos=2_000,
    tres={"cpu": 1_000.0, "mem": 2_000.0},
)


def cluster(**more: Any) -> FactorScale:
    """Return ten nodes with 160 CPUs; partitions of factor 1 and 2, QOS of priority 5 and 10."""
    defaults: dict[str, Any] = {"totals": {"cpu": [160, 160], "mem": [MEMORY, MEMORY]}}
    return scale(
        nodes=10, cpus=160, partition_factors=[1, 2], qos_priorities=[5, 10], **(defaults | more)
    )


def single_job(to: FactorScale, **columns: Any) -> PendingColumns:
    return pending(to, 1, **columns)


def vector(**more: Any) -> PendingColumns:
    """Return the job of vector V12."""
    defaults: dict[str, Any] = {
        "accrued_at": NOW - WEEK // 2,
        "nodes": 1,
        "cpus": 8,
        "fairshare": 2 ** (-0.3875 / 0.3),
        "partition": 0,
        "qos": 0,
        "site": 50,
        "nice": 100,
        "tres": {"cpu": 8, "mem": 32_768},
    }
    return single_job(cluster(), **(defaults | more))


def priority(
    job: PendingColumns, settings: MultifactorSettings, to: FactorScale | None = None
) -> int:
    return int(priorities(job, to or cluster(), settings, NOW)[0])
