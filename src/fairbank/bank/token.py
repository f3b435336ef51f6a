"""An opaque token, as far as the bank remembers it."""

from __future__ import annotations

import msgspec

from fairbank.core.time import Instant


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """Never the secret, only its keyed digest. `parent` is the token by which it was made, if any: it is good only as long as that one."""

    id: int
    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    created: Instant
    expires: Instant
    revoked: Instant | None = None
    parent: int | None = None
