"""JSON as values, read strictly: shapes and bounds are msgspec's, and here no key may stand twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from fairbank.core.errors import InvalidInput
from fairbank.rest.asking.misfits import malformed
from fairbank.rest.asking.no_json import no_json
from fairbank.rest.bodies.requests import Reports


def read_json(body: bytes | msgspec.Raw, kind: Any) -> Any:
    """JSON as a value of `kind`. Raises InvalidInput, naming the field."""
    try:
        found = _decoder(kind).decode(body)
        _demand_no_twins(bytes(body), kind)
    except msgspec.ValidationError as bad:
        with suppress(
            msgspec.DecodeError, ValueError, RecursionError
        ):  # what else is wrong with it is told another time
            _demand_no_twins(
                bytes(body), kind
            )  # first: of two values nobody can say which is the wrong one
        raise _with_words(malformed(bad), kind) from bad
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise no_json(bytes(body), str(bad)) from bad
    except RecursionError as bad:
        raise InvalidInput(
            "the body is nested too deeply", remedy="send one JSON object, as /docs describes it"
        ) from bad
    return found


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


# --- keys that stand twice ---


def _demand_no_twins(body: bytes, kind: Any) -> None:
    """Raises InvalidInput for a key that stands twice: of two amounts nobody should have to guess which one counts."""
    if _has_surely_none(body, kind):
        return
    pairs = json.loads(body, object_pairs_hook=list, parse_int=str, parse_float=str)
    names = (
        [each[0] for each in pairs if isinstance(each, tuple)] if isinstance(pairs, list) else []
    )  # no object has no keys
    if twin := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(
            f"{twin[:64]!r} stands there twice", field=twin[:64], remedy="send it once"
        )


def _has_surely_none(body: bytes, kind: Any) -> bool:
    """A look that costs a microsecond and settles nearly all good input; in doubt no.

    Each key has its colon, and our shapes have no objects inside. Reports are, but each is read by itself.
    """
    if kind is Reports:
        return body.count(b'"reports"') == 1 and b"\\" not in body
    there = _decoder(Any).decode(body)
    return isinstance(there, dict) and len(there) == body.count(b":")


# --- words that are none of those allowed ---


def _with_words(trouble: InvalidInput, kind: Any) -> InvalidInput:
    """The same trouble; where the field takes certain words only, or the body is a bare list of reports, the remedy says so."""
    if kind is Reports and trouble.field is None:
        return InvalidInput(
            trouble.message,
            field="reports",
            remedy='send {"reports": [...]}, the reports in their order',
        )
    words = sorted(_words(inspect.type_info(kind), trouble.field or ""))
    return (
        InvalidInput(trouble.message, field=trouble.field, remedy=f"one of {', '.join(words)}")
        if words
        else trouble
    )


def _words(shape: inspect.Type, field: str) -> Iterator[str]:
    match shape:
        case inspect.UnionType():
            for each in shape.types:
                yield from _words(each, field)
        case inspect.StructType():
            if field and field == shape.tag_field:
                yield str(shape.tag)
            for each_field in shape.fields:
                if each_field.name == field:
                    yield from _words(each_field.type, "")
        case inspect.LiteralType() if not field:
            yield from map(str, shape.values)
