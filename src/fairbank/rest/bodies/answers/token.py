"""Tokens."""

from __future__ import annotations

from msgspec import Struct


class TokenRow(Struct, frozen=True, kw_only=True):
    id: int
    uid: int
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None


class TokenCard(TokenRow, frozen=True, kw_only=True):
    """A new token. The secret is shown this once."""

    secret: str
