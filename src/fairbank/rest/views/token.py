"""Tokens, as the shapes that travel."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from fairbank.bank.token import Token
from fairbank.core.time import iso
from fairbank.rest.bodies import answers


def token_row(token: Token) -> answers.TokenRow:
    """A token without its secret."""
    return answers.TokenRow(
        id=token.id,
        uid=token.uid,
        label=token.label,
        scopes=list(token.scopes),
        created=iso(token.created),
        expires=iso(token.expires),
        revoked=None if token.revoked is None else iso(token.revoked),
        parent=token.parent,
    )


def token_card(token: Token, secret: str, warnings: list[str]) -> answers.TokenCard:
    """A new token with its secret, which is shown this once."""
    return answers.TokenCard(
        **msgspec.structs.asdict(token_row(token)), secret=secret, warnings=warnings or UNSET
    )
