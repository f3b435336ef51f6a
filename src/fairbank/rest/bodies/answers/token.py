"""Tokens."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class TokenRow(Struct, frozen=True, kw_only=True):
    """`parent` is the token by which it was made, null for one made by somebody who signed in without; `revoked` is when the first of its
    line was."""

    id: int
    uid: int
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None
    parent: int | None


class TokenCard(TokenRow, frozen=True, kw_only=True):
    """A new token. The secret is shown this once; `warnings`, where there are any, are what may not have been meant."""

    secret: str
    warnings: list[str] | UnsetType = UNSET
