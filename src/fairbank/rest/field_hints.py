"""Field of a request that a refusal is about: the one that should have had another value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, get_args

from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from fairbank.bank.refusal import Reason, Refusal
from fairbank.rest.parameters import SENT_NAMES


def field_of(refusal: Refusal, fields: Collection[str]) -> str | None:
    """Return the field that the refusal is about, of the fields of the request.

    For some reasons it is the one that the refusal names.
    """
    candidates = [name for name in FIELDS[refusal.reason] if name in fields]
    if refusal.reason in _NAMING_FIELD:
        candidates.sort(key=lambda name: not re.search(rf"\b{name} ", refusal.about or ""))
    return candidates[0] if candidates else None


@cache
def fields_of(handler: HTTPRouteHandler) -> frozenset[str]:
    """Return the names of all parts of a request to a route: path, query, headers, body."""
    names = {SENT_NAMES.get(name, name) for name in handler.parsed_fn_signature.parameters}
    data = handler.parsed_data_field
    return frozenset(names if data is None else names | fields_of_body(data.annotation))


def fields_of_body(kind: Any) -> frozenset[str]:
    """Return the fields of a type, or of all types of a union."""
    types = [
        member
        for member in (kind, *get_args(kind))
        if isinstance(member, type) and issubclass(member, Struct)
    ]
    return frozenset(name for member in types for name in member.__struct_encode_fields__)


_NAMING_FIELD = frozenset(
    {
        Reason.FROM_FUTURE,
        Reason.TOLD_OTHERWISE,
        Reason.EXISTS,
        Reason.NAMES_STAY,
        Reason.PROJECT_REMOVED,
        Reason.OVERLAP,
    }
)
"""Reasons whose refusals name the field."""

FIELDS: Mapping[Reason, tuple[str, ...]] = {
    Reason.OVERDRAWN: ("account", "amount", "entry"),
    Reason.CAPPED: ("owner_uid", "entry"),
    Reason.NO_ALLOCATION: ("account", "entry"),
    Reason.FROZEN: ("account", "allocation", "entry"),
    Reason.UNPRICED: ("partition",),
    Reason.FROM_FUTURE: ("end", "start", "submitted"),
    Reason.NO_HOLD: ("job_id", "job", "entry"),
    Reason.RUN_TAKEN: ("job_id",),
    Reason.RUN_RESOLVED: ("job_id", "job", "entry"),
    Reason.TOLD_OTHERWISE: ("owner_uid", "account", "partition"),
    Reason.KEY_TAKEN: ("Idempotency-Key", "key"),
    Reason.NOT_ENOUGH: ("amount", "entry"),
    Reason.LIMIT_IN_USE: ("credit_limit", "entry"),
    Reason.UNDONE: ("entry",),
    Reason.CHANGED_SINCE: ("entry",),
    Reason.NOT_UNDONE: ("entry",),
    Reason.SAME_ALLOCATION: ("to",),
    Reason.NOT_DUE: ("job_id", "job", "allocation"),
    Reason.TOO_MUCH_BACK: ("amount", "entry"),
    Reason.NOTHING_BACK: ("job", "entry"),
    Reason.OTHER_RESOURCE: ("to", "entry"),
    Reason.OVERLAP: ("end", "start", "entry"),
    Reason.WRONG_STATE: ("event", "allocation", "job", "job_id", "entry"),
    Reason.OVER: ("end", "allocation", "entry"),
    Reason.TOO_LARGE: ("amount", "credit_limit", "account", "entry"),
    Reason.BAD_PERIOD: ("end", "entry"),
    Reason.UNKNOWN_ENTRY: ("entry",),
    Reason.UNKNOWN_ALLOCATION: ("to", "allocation", "entry"),
    Reason.UNKNOWN_PROJECT: ("parent", "account", "project", "entry"),
    Reason.NO_MEMBER: ("uid", "entry"),
    Reason.UNKNOWN_TOKEN: ("token",),
    Reason.TOKEN_TAKEN: ("label",),
    Reason.ROLE_ABOVE: ("role", "uid", "entry"),
    Reason.PROJECT_IN_USE: ("project",),
    Reason.PROJECT_REMOVED: ("account", "parent", "project", "allocation", "entry"),
    Reason.OWN_PARENT: ("parent",),
    Reason.NAMES_STAY: ("gid", "account"),
    Reason.EXISTS: ("gname", "gid", "account"),
}
"""Fields by reason, the most specific first."""
