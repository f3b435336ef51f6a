"""Token of a user for authentication over the network."""

from __future__ import annotations

import msgspec

from fairbank.core.time import Instant


class Token(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Token without its secret, of which only a keyed digest is stored.

    `parent` is the token that created it, if any: it is valid only as long as that one.
    """

    id: int
    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    created: Instant
    expires: Instant
    revoked: Instant | None = None
    parent: int | None = None
