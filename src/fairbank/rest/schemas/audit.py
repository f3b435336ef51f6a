"""Last links of the journal's hash chains."""

from __future__ import annotations

from msgspec import Struct


class ChainHead(Struct, frozen=True, kw_only=True):
    """The last entry of an allocation's journal."""

    allocation: int
    seq: int
    link: str


class AuditCard(Struct, frozen=True, kw_only=True):
    """Number of entries, and the last links.

    The registry is the journal of projects, roles and tokens.
    """

    entries: int
    registry_seq: int
    registry_link: str
    heads: list[ChainHead]


class AuditAnswer(Struct, frozen=True, kw_only=True):
    """A page of last links. Send `next` as `after` for the next page."""

    schema: str
    as_of: str
    data: AuditCard
    next: str | None = None
