"""Token of a user for authentication over the network."""

from __future__ import annotations

import msgspec

from fairbank.core.time import Instant


class TokenGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Rights of a token: who knows its secret is authenticated as user `uid` until `expires`.

    The bank has only `digest` of the secret, made with a key. `parent` is the token of the request
    that created it, if it had one: it is valid only as long as that one.
    """

    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    expires: Instant
    parent: int | None = None


class Token(TokenGrant, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Token as it is stored, without its secret."""

    id: int
    created: Instant
    revoked: Instant | None = None
