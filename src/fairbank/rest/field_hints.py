"""Which field of a request the bank's no is about: of those that the request has, the one that would have to be another."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, get_args

from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from fairbank.bank.refusal import Reason, Refusal
from fairbank.rest.parameters import SENT_NAMES


def field_of(no: Refusal, there: Collection[str]) -> str | None:
    """The field among those that are `there`: one that the no itself speaks about, where it does."""
    concerned = [each for each in CONCERNED[no.reason] if each in there]
    if no.reason in _TELLING:
        concerned.sort(key=lambda each: not re.search(rf"\b{each} ", no.about or ""))
    return concerned[0] if concerned else None


@cache
def fields_of(handler: HTTPRouteHandler) -> frozenset[str]:
    """What a request to this route may say: in its address, its headers and its body, as the client writes it."""
    names = {SENT_NAMES.get(each, each) for each in handler.parsed_fn_signature.parameters}
    data = handler.parsed_data_field
    return frozenset(names if data is None else names | fields_of_body(data.annotation))


def fields_of_body(kind: Any) -> frozenset[str]:
    """The fields of a shape, or of all that it may be."""
    shapes = [
        each
        for each in (kind, *get_args(kind))
        if isinstance(each, type) and issubclass(each, Struct)
    ]
    return frozenset(name for each in shapes for name in each.__struct_encode_fields__)


_TELLING = frozenset(
    {
        Reason.FROM_FUTURE,
        Reason.TOLD_OTHERWISE,
        Reason.EXISTS,
        Reason.NAMES_STAY,
        Reason.PROJECT_REMOVED,
        Reason.OVERLAP,
    }
)
"""They say what it is about by the field's own name."""

CONCERNED: Mapping[Reason, tuple[str, ...]] = {
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
"""The first that a request has."""
