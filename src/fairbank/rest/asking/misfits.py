"""What a body or a parameter is not: msgspec's sentences in peoples' words, with the field and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import ValidationError

from fairbank.core.errors import InvalidInput

_KINDS = {
    "int": "a whole number",
    "float": "a number with a fraction or an exponent",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "decimal": "a number",
}
_KIND = re.compile(r"`(\w+(?: \| \w+)*)`")
_BOUND = re.compile(r"Expected `int` ([<>]=) (-?\d+)")
_UNITS = {
    **dict.fromkeys(("amount", "credit_limit", "cap"), " SU-minutes"),
    **dict.fromkeys(
        ("time_limit", "elapsed", "start", "end", "submitted", "cpu_seconds"), " seconds"
    ),
}
"""What numbers in these fields count."""
_LENGTH = re.compile(r" of length ([<>]=) (\d+)")
_WHERE = re.compile(r"(?P<what>.*?) - at `(?P<key>key in )?\$(?P<path>.*)`", re.DOTALL)
_FIELD = re.compile(
    r"Object (?P<fault>contains unknown|missing required) field `(?P<field>.*)`", re.DOTALL
)
DOCUMENTED = "/docs describes what may be sent"


def malformed(error: ValidationError) -> InvalidInput:
    """What msgspec says of a body, in words, with the field named."""
    said, path = str(error), ""
    if where := _WHERE.fullmatch(said):
        said, path = where["what"], where["path"].lstrip(".")
    if fault := _FIELD.fullmatch(said):
        field = f"{path}.{fault['field']}" if path else fault["field"]
        if fault["fault"] == "missing required":
            return InvalidInput(
                f"{field} is missing", field=field, remedy=f"send {field}; {DOCUMENTED}"
            )
        return InvalidInput(
            f"{field[:64]!r} is not a field here",
            field=field[:64],
            remedy=f"leave it out; {DOCUMENTED}",
        )
    unit = _UNITS.get(path, "") if _BOUND.fullmatch(said) else ""
    return InvalidInput(
        f"{path or 'the body'}: {in_words(said)}",
        field=path or None,
        remedy=f"{remedy_for(said)}{unit}",
    )


def missing_body() -> InvalidInput:
    """Where there is none at all."""
    return InvalidInput(
        "the body is missing", remedy=f"send a JSON object, with its Content-Length; {DOCUMENTED}"
    )


def in_words(said: str) -> str:
    """msgspec's sentence without its type names: "expected a whole number, or nothing, got text"."""
    words = _KIND.sub(lambda match: _kinds(match[1].split(" | ")), said)
    words = _LENGTH.sub(
        lambda match: f", {'at least' if match[1] == '>=' else 'at most'} {match[2]} long", words
    )
    return words[:1].lower() + words[1:200]


def _kinds(names: Sequence[str]) -> str:
    """What may stand there; null beside something else is nothing."""
    there = " or ".join(_KINDS.get(each, each) for each in names if each != "null")
    return f"{there}, or nothing" if there and "null" in names else there or _KINDS["null"]


def remedy_for(said: str) -> str:
    """What to send instead."""
    if said.startswith(
        ("Expected `int`, got", "Expected `int | null`, got", "Number out of range")
    ):
        return "send a whole number: no quotes, no fraction, no exponent"
    if said.startswith(("Expected `bool`, got", "Expected `bool | null`, got")):
        return "true or false"
    if length := _LENGTH.search(said):
        return f"make it {'at least' if length[1] == '>=' else 'at most'} {length[2]} long"
    if bound := _BOUND.fullmatch(said):
        return f"at {'least' if bound[1] == '>=' else 'most'} {bound[2]}"
    return DOCUMENTED
