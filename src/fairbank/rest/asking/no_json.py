"""What keeps a body from being JSON, and where that stands. The strict reader knows a byte at most, or says that the body was cut off."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from fairbank.core.errors import InvalidInput

LOOKED_AT_MAX = 256 * 1024
"""Bytes of a body that is looked through for the place; more takes too long for somebody who sends no JSON."""

_REMEDY = "send one whole JSON object in UTF-8"
_HALF = re.compile("[\ud800-\udfff]")
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"\x00")


def no_json(body: bytes, said: str) -> InvalidInput:
    """What to tell of a body that is none; `said` is what the strict reader says of it."""
    if body.startswith(codecs.BOM_UTF8):
        return InvalidInput(
            "the body is not JSON: it begins with a byte order mark", remedy="send UTF-8 without it"
        )
    if body.startswith(_MARKS) or b"\x00" in body[:2]:
        return InvalidInput("the body is not UTF-8, but perhaps UTF-16 or UTF-32", remedy=_REMEDY)
    try:
        text, bad = body.decode(), None
    except UnicodeDecodeError as error:
        text, bad = (
            body.decode(errors="surrogateescape"),
            f"byte {error.start} of the body (0x{body[error.start]:02x}) is not UTF-8",
        )
    found = _first(text) if len(body) <= LOOKED_AT_MAX else None
    if bad is not None:
        field = found.path if found else ""
        return InvalidInput(
            f"{field}: {bad}" if field else bad, field=field or None, remedy=_REMEDY
        )
    if found is not None:
        return InvalidInput(
            f"{found.path or 'the body'}: {found.what}",
            field=found.path or None,
            remedy=found.remedy,
        )
    why = (
        "it ends too early"
        if said.endswith("truncated")
        else said.removeprefix("JSON is malformed: ")
    )
    return InvalidInput(f"the body is not JSON: {why}", remedy=_REMEDY)


class _Found(NamedTuple):
    path: str
    what: str
    remedy: str


class _NoNumber(str):
    """NaN or Infinity."""

    __slots__ = ()


def _first(text: str) -> _Found | None:
    """What JSON has not, though many programs write it: the first in the order of the text, if all the rest can be read."""
    try:
        whole = json.loads(text, object_pairs_hook=tuple, parse_constant=_NoNumber, parse_int=str)
        return next(_all(whole, ""), None)
    except (ValueError, RecursionError):
        return None


def _all(value: object, path: str) -> Iterator[_Found]:
    match value:
        case _NoNumber():
            yield _Found(path, f"{value} is no number in JSON", "send a finite number")
        case str() if half := _HALF.search(value):
            shown = f"\\u{ord(half[0]):04x}"
            yield _Found(
                path,
                f"{shown} is half of a character",
                f"send the whole character; as escapes it takes two, such as {_PAIR}",
            )
        case tuple():  # an object
            for key, each in value:
                yield from (
                    found._replace(what=f"in a key, {found.what}") for found in _all(key, path)
                )
                yield from _all(each, f"{path}.{key[:64]}" if path else key[:64])
        case list():
            for place, each in enumerate(value):
                yield from _all(each, f"{path}[{place}]")


_PAIR = "\\ud83d\\ude00"
