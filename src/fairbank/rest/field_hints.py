"""Field of a request that a refusal is about."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, get_args

from litestar.handlers import HTTPRouteHandler
from msgspec import Struct

from fairbank.bank.refusals import Refusal
from fairbank.rest.parameters import SENT_NAMES


def field_of(refusal: Refusal, fields: Collection[str]) -> str | None:
    """Return the field of a request that a refusal is about, of those that the request may have."""
    named = (refusal.facts or {}).get("field")
    if named in fields:
        return named
    return next((name for name in refusal.reason.info.request_fields if name in fields), None)


@cache
def fields_of(handler: HTTPRouteHandler) -> frozenset[str]:
    """Return the fields of a request to this route, in its address, headers and body, as sent."""
    names = {SENT_NAMES.get(name, name) for name in handler.parsed_fn_signature.parameters}
    data = handler.parsed_data_field
    return frozenset(names if data is None else names | fields_of_body(data.annotation))


def fields_of_body(kind: Any) -> frozenset[str]:
    """Return the fields of a schema, or of all schemas of a union."""
    schemas = [
        schema
        for schema in (kind, *get_args(kind))
        if isinstance(schema, type) and issubclass(schema, Struct)
    ]
    return frozenset(name for schema in schemas for name in schema.__struct_encode_fields__)
