"""Fields of all requests."""

from __future__ import annotations

import msgspec


class BaseRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="do"):
    """Base of all requests. `key` is an idempotency key of the actor.

    The same request under the key gets the same answer; another request under it is a conflict. A
    request that changes nothing, such as a repeated hold without its key, adds no entry and no key.
    """

    key: str | None = None
    comment: str | None = None
