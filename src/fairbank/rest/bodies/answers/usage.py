"""Who used what."""

from __future__ import annotations

from msgspec import Struct


class UsageRow(Struct, frozen=True, kw_only=True):
    """What a group of runs used; `group` is the uid, the day or month (UTC), the partition or the allocation."""

    group: str | int
    runs: int
    failed: int
    charged: int
    elapsed: int
