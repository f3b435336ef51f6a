"""Query parameters, before any handler sees them: known, given once, of printable text, and where words are listed one of these."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairbank.core.errors import InvalidInput
from fairbank.rest.asking import Asking

Schema = Mapping[str, Any]
_WHOLE = re.compile(r"-?[0-9]{1,40}")


class Queries:
    """What each operation of the OpenAPI document takes, by the operation's id and the parameter's name."""

    def __init__(self, known: Mapping[str, Mapping[str, Schema]]) -> None:
        self._known = known

    def check(self, request: Asking) -> None:
        """Raises InvalidInput, naming the parameter as the client wrote it."""
        if not request.scope["query_string"]:
            return
        known = self._known.get(str(request.route_handler.operation_id), {})
        for name, said in request.query_params.dict().items():
            if name not in known:  # a mistyped filter would show everything
                there = ", ".join(sorted(known)) or "none"
                raise InvalidInput(
                    f"{name[:64]!r} is not a parameter here",
                    field=name[:64],
                    remedy=f"there are: {there}",
                )
            if len(said) > 1:
                raise InvalidInput(
                    f"{name} is given {len(said)} times", field=name, remedy="give it once"
                )
            _check_text(name, str(said[0]), known[name])


def _check_text(name: str, text: str, schema: Schema) -> None:
    if "\ufffd" in text:  # what the framework makes of bytes that are none
        raise InvalidInput(
            f"{name} is not UTF-8", field=name, remedy="write it in UTF-8, percent-encoded"
        )
    if not text.isprintable():  # a database may choke on a NUL
        raise InvalidInput(
            f"{name} has characters that nobody can see", field=name, remedy="write printable text"
        )
    if len(text) > schema.get("maxLength", len(text)):
        raise InvalidInput(
            f"{name} is too long", field=name, remedy=f"at most {schema['maxLength']} characters"
        )
    if schema.get("type") == "integer" and not _WHOLE.fullmatch(
        text
    ):  # the framework would take 1e3 for 1000
        raise InvalidInput(
            f"{name}: {text[:64]!r} is not a whole number",
            field=name,
            remedy="write digits: no fraction, exponent or blank",
        )
    if text not in schema.get("enum", (text,)):
        raise InvalidInput(
            f"{name}: {text[:64]!r} is none of the words it takes",
            field=name,
            remedy=f"one of {', '.join(schema['enum'])}",
        )
