"""Checks of addresses and query parameters before any handler sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from litestar.exceptions import NotFoundException

from fairbank.core.errors import InvalidInput
from fairbank.rest.request import ApiRequest

Schema = Mapping[str, Any]
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,40}")


def check_address(request: ApiRequest) -> None:
    """Check the address and the headers that may be there once.

    Raises:
        InvalidInput: a number that only Python reads as one (+1, 1_0, digits of other scripts), no
            Host, or more than one Host or key.
        NotFoundException: an encoded slash, which a proxy that checks addresses would not see.
    """
    names = [name for name, _ in request.scope["headers"]]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and request.scope["http_version"] == "1.1"):
        raise InvalidInput(
            f"the request has {hosts or 'no'} Host headers",
            field="Host",
            remedy="send one: Host: NAME",
        )
    if names.count(b"idempotency-key") > 1:
        raise InvalidInput("the request has two keys", field="Idempotency-Key", remedy="send one")
    if b"%2f" in request.scope["raw_path"].lower():
        raise NotFoundException
    if not request.path_params:
        return
    parts = (part for part in request.scope["path"].split("/") if part)
    template = (part for part in request.scope["path_template"].split("/") if part)
    for part, name in zip(parts, template, strict=False):
        value = request.path_params.get(name.strip("{}")) if name.startswith("{") else None
        if isinstance(value, int) and part != str(value):
            field = name.strip("{}")
            raise InvalidInput(
                f"{field}: {part[:64]!r} is not a number in plain digits",
                field=field,
                remedy=f"write it as {value}",
            )


def check_query(request: ApiRequest, parameters: Mapping[str, Mapping[str, Schema]]) -> None:
    """Check that query parameters are known, printable, of the accepted form, and given once
    unless they have several values.

    Args:
        parameters: the schemas of the parameters of each operation, from the OpenAPI document.

    Raises:
        InvalidInput: `field` is the parameter as the client wrote it.
    """
    if not request.scope["query_string"]:
        return
    known = parameters.get(str(request.route_handler.operation_id), {})
    for name, values in request.query_params.dict().items():
        if name not in known:  # a mistyped filter would list everything
            names = ", ".join(sorted(known)) or "none"
            raise InvalidInput(
                f"{name[:64]!r} is not a parameter here",
                field=name[:64],
                remedy=f"there are: {names}",
            )
        schema = known[name]
        most = schema.get("maxItems", 1)
        if len(values) > most:
            remedy = "give it once" if most == 1 else f"give it at most {most} times"
            raise InvalidInput(f"{name} is given {len(values)} times", field=name, remedy=remedy)
        for value in values:
            _check_text(name, str(value), schema.get("items", schema))
            _check_item(name, str(value), schema.get("items", {}))


def _check_text(name: str, text: str, schema: Schema) -> None:
    if "\ufffd" in text:  # the framework replaces bytes that are not UTF-8 with it
        raise InvalidInput(
            f"{name} is not UTF-8", field=name, remedy="write it in UTF-8, percent-encoded"
        )
    if not text.isprintable():  # a database may fail on a NUL
        raise InvalidInput(
            f"{name} has unprintable characters", field=name, remedy="write printable text"
        )
    if len(text) > schema.get("maxLength", len(text)):
        raise InvalidInput(
            f"{name} is too long", field=name, remedy=f"at most {schema['maxLength']} characters"
        )
    # The framework would take 1e3 for 1000.
    if schema.get("type") == "integer" and not _WHOLE_NUMBER.fullmatch(text):
        raise InvalidInput(
            f"{name}: {text[:64]!r} is not a whole number",
            field=name,
            remedy="write digits: no fraction, exponent or blank",
        )
    if text not in schema.get("enum", (text,)):
        raise InvalidInput(
            f"{name}: {text[:64]!r} is not one of the accepted words",
            field=name,
            remedy=f"one of {', '.join(schema['enum'])}",
        )


def _check_item(name: str, text: str, schema: Schema) -> None:
    """Check the bounds of one of several numbers; the framework checks only single ones."""
    if schema.get("type") != "integer":
        return
    least, most = int(schema["minimum"]), int(schema["maximum"])
    if not least <= int(text) <= most:
        raise InvalidInput(
            f"{name}: {text} is out of range", field=name, remedy=f"from {least} to {most}"
        )
