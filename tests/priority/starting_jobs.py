"""Jobs that would start, and the limits that they reach."""

from __future__ import annotations

from typing import Any

from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.start import limit_tests
from fairbank.priority.limits.usage import (
    AssociationLimits,
    Counts,
    LimitedJob,
    LimitTest,
    LimitUsage,
    Link,
)

LIMITS, SAFE = Enforced(), Enforced(safe=True)
USER, ACCOUNT, ROOT = "ada@physics", "physics", "root"


def tres(kind: LimitKind, **more: int) -> AssociationLimits:
    return AssociationLimits(
        tres={kind: {name.replace("_", "/"): limit for name, limit in more.items()}}
    )


def chain(
    user: AssociationLimits = AssociationLimits(),
    account: AssociationLimits = AssociationLimits(),
    used: LimitUsage = LimitUsage(),
    of_account: LimitUsage = LimitUsage(),
) -> tuple[Link, ...]:
    return (
        Link(name=USER, limits=user, used=used),
        Link(name=ACCOUNT, limits=account, used=of_account),
        Link(name=ROOT),
    )


def starting_job(counts: Counts | None = None, **more: Any) -> LimitedJob:
    defaults: dict[str, Any] = {
        "counts": counts or {"cpu": 10, "node": 1},
        "chain": chain(),
        "limit_minutes": 30,
    }
    return LimitedJob(**(defaults | more))


def holding_limit(job: LimitedJob, enforced: Enforced) -> LimitTest | None:
    """Return the limit that holds `job`, or None."""
    return next((test for test in limit_tests(job, enforced) if test.holds), None)


def reason(job: LimitedJob, enforced: Enforced = LIMITS) -> str | None:
    result = holding_limit(job, enforced)
    return result.reason if result else None


# --- of vector V13 ---

BUDGET = tres(LimitKind.GRP_TRES_MINS, cpu=1_000)
HALF = LimitUsage(seconds={"cpu": 30_059.0}, run_seconds={"cpu": 12_000})
