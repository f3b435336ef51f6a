"""API tokens."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, structs

from fairbank.bank.token import Token
from fairbank.core.time import iso


class TokenRow(Struct, frozen=True, kw_only=True):
    """A token without its secret.

    `parent` is the token that created it, null if the user signed in otherwise. `revoked` is the
    time at which it or one of its ancestors was revoked first.
    """

    id: int
    uid: int
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None
    parent: int | None


class TokenCard(TokenRow, frozen=True, kw_only=True):
    """A new token with its secret, which is shown once. `warnings`, if any, name likely
    mistakes."""

    secret: str
    warnings: list[str] | UnsetType = UNSET


def token_row(token: Token) -> TokenRow:
    """Return a token without its secret."""
    return TokenRow(
        id=token.id,
        uid=token.uid,
        label=token.label,
        scopes=list(token.scopes),
        created=iso(token.created),
        expires=iso(token.expires),
        revoked=None if token.revoked is None else iso(token.revoked),
        parent=token.parent,
    )


def token_card(token: Token, secret: str, warnings: list[str]) -> TokenCard:
    """Return a new token with its secret."""
    return TokenCard(**structs.asdict(token_row(token)), secret=secret, warnings=warnings or UNSET)
