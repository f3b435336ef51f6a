"""Jobs that would start, and whose limits they meet."""

from __future__ import annotations

from typing import Any

from fairbank.priority.limits.start import holding
from fairbank.priority.limits.reasons import Kind
from fairbank.priority.limits.usage import (Asking, Counts, Limits, Link, Used)
from fairbank.priority.limits.chain import Enforced

LIMITS, SAFE = Enforced(), Enforced(safe=True)
USER, ACCOUNT, ROOT = "ada@physics", "physics", "root"


def tres(kind: Kind, **more: int) -> Limits:
    return Limits(tres={kind: {name.replace("_", "/"): limit for name, limit in more.items()}})


def chain(
    user: Limits = Limits(),
    account: Limits = Limits(),
    used: Used = Used(),
    of_account: Used = Used(),
) -> tuple[Link, ...]:
    return (
        Link(name=USER, limits=user, used=used),
        Link(name=ACCOUNT, limits=account, used=of_account),
        Link(name=ROOT),
    )


def asking(counts: Counts | None = None, **more: Any) -> Asking:
    told: dict[str, Any] = {
        "counts": counts or {"cpu": 10, "node": 1},
        "chain": chain(),
        "limit_minutes": 30,
    }
    return Asking(**(told | more))


def reason(job: Asking, enforced: Enforced = LIMITS) -> str | None:
    found = holding(job, enforced)
    return found.reason if found else None


# --- of vector V13 ---

BUDGET = tres(Kind.GRP_TRES_MINS, cpu=1_000)
HALF = Used(seconds={"cpu": 30_059.0}, run_seconds={"cpu": 12_000})
