"""What all requests have."""

from __future__ import annotations

import msgspec


class BaseRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="do"):
    """`key` makes a request of one actor idempotent: the same again gets the same answer, another request under it is a conflict.

    A request that is found granted already (a run held before, said again without its key) leaves no entry, nor its key.
    """

    key: str | None = None
    comment: str | None = None
