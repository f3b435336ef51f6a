"""Prices, and where jobs run."""

from __future__ import annotations

from msgspec import Struct


class QuoteLine(Struct, frozen=True, kw_only=True):
    """count x weight = weighted, exact decimals or fractions; `counts` when this line makes the price."""

    what: str
    count: str
    weight: str
    weighted: str
    counts: bool


class QuoteCard(Struct, frozen=True, kw_only=True):
    """A price with its reasons: amount = billing x factor x seconds / 60, rounded up once. `longest_seconds` is the longest
    time limit that there is credit for; `fits` also where a bank that only observes lets the job through without it. `notes` tell that, and
    what the price leaves out."""

    account: str
    cluster: str
    resource: str
    lines: list[QuoteLine]
    billing: str
    factor: str
    seconds: int
    amount: int
    allocation: int | None
    available: int
    after: int
    fits: bool
    longest_seconds: int
    notes: list[str]
