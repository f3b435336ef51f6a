"""How far the books are."""

from __future__ import annotations

from msgspec import Struct


class Head(Struct, frozen=True, kw_only=True):
    """The last entry of an allocation's book."""

    allocation: int
    seq: int
    link: str


class AuditCard(Struct, frozen=True, kw_only=True):
    entries: int
    registry_seq: int
    registry_link: str
    heads: list[Head]


class AuditAnswer(Struct, frozen=True, kw_only=True):
    schema: str
    as_of: str
    data: AuditCard
    next: str | None = None
