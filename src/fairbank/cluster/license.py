"""Licenses of a cluster, which jobs request beside nodes."""

from __future__ import annotations

import msgspec


class License(msgspec.Struct, frozen=True):
    """License: how many exist, and how many are free to jobs."""

    name: str
    total: int
    free: int
