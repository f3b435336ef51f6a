"""Comparison of a published JSON Schema with the present one.

What is sent must fit what the other side knows. An answer follows the present schema, and its
reader knows the published one. A request follows the published schema, and the server knows the
present one. Besides, no published field may be missing, and an answer keeps its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
UPPER_BOUNDS = ("maximum", "maxLength", "maxItems", "maxProperties")
LOWER_BOUNDS = ("minimum", "minLength", "minItems")
FORMS = ("pattern", "format", "contentEncoding", "propertyNames")
KEYWORDS = frozenset(
    (
        *("type", "enum", "const", "anyOf", "oneOf", "items", "properties", "required"),
        *("additionalProperties", "default", "description", *UPPER_BOUNDS, *LOWER_BOUNDS, *FORMS),
    )
)
"""Keywords that the comparison knows."""
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


@dataclass(frozen=True)
class Comparison:
    """Direction of a comparison: of answers, or of requests."""

    is_answer: bool

    def losses(self, published: Schema, present: Schema) -> list[str]:
        """Return the places at which the present schema breaks the published one."""
        sent, read = (present, published) if self.is_answer else (published, present)
        return list(dict.fromkeys(self._part(sent, read, "$")))

    def _part(self, sent: Schema, read: Schema, place: str) -> Iterator[str]:
        own, known = _alternatives(sent), _alternatives(read)
        for alternative in own:
            yield from self._faults_of(alternative, known, place)
        for alternative in known if self.is_answer else ():
            if "enum" in alternative and not any(_has_type(part, alternative) for part in own):
                yield f"{place} has other words"

    def _faults_of(self, sent: Schema, known: list[Schema], place: str) -> list[str]:
        """Return what of one alternative is in none of those that the other side knows."""
        fitting = [read for read in known if _has_type(sent, read)]
        if not fitting:
            may = "may be" if self.is_answer else "may no longer be"
            return [f"{place} {may} {sent.get('type', 'anything')}"]
        return min((list(self._faults(sent, read, place)) for read in fitting), key=len)

    def _faults(self, sent: Schema, read: Schema, place: str) -> Iterator[str]:
        published, present = (read, sent) if self.is_answer else (sent, read)
        if "enum" in read:
            words, known = set(sent.get("enum", ())), set(read["enum"])
            if not words or words - known or (self.is_answer and words != known):
                yield f"{place} has other words"
        for name in (*UPPER_BOUNDS, *LOWER_BOUNDS):
            if name in read and not _is_within(name, sent, read):
                yield f"{place} has another {name}"
        for name in FORMS:
            if name in read and sent.get(name) != read[name]:
                yield f"{place} has another {name}"
        if published.get("description", "") not in ("", present.get("description")):
            yield f"{place} has another unit"
        if not self.is_answer and published.get("default") != present.get("default"):
            yield f"{place} has another default"
        if "items" in read:
            yield from self._part(sent.get("items", {}), read["items"], f"{place}[]")
        if read.get("type") == "object":
            yield from self._fields(sent, read, place)

    def _fields(self, sent: Schema, read: Schema, place: str) -> Iterator[str]:
        own, known = sent.get("properties", {}), read.get("properties", {})
        for name in sorted(known.keys() - own.keys() if self.is_answer else own.keys() - known):
            yield f"{place}.{name} is missing"
        for name in sorted(set(read.get("required", ())) - set(sent.get("required", ()))):
            if not self.is_answer or name in own:
                yield f"{place}.{name} is {'optional' if self.is_answer else 'required'}"
        for name in sorted(own.keys() & known):
            yield from self._part(own[name], known[name], f"{place}.{name}")
        own_others, others = (part.get("additionalProperties", {}) for part in (sent, read))
        if others is False and own_others is not False:
            yield f"{place} has no other fields"
        elif others and own_others is not False:
            yield from self._part(own_others, others, f"{place}[]")


def _alternatives(schema: Schema) -> list[Schema]:
    """Return a schema as alternatives of one type each; one without a type stands for all."""
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return [
                {
                    **part,
                    **{key: schema[key] for key in ("default", "description") if key in schema},
                }
                for option in schema[name]
                for part in _alternatives(option)
            ]
    words = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if words:
        named = [(_NAMES[type(word)], word) for word in words]
        return [
            {**schema, "type": name, "enum": [word for own, word in named if own == name]}
            for name in dict.fromkeys(own for own, _ in named)
        ]
    types = schema.get("type")
    return [{**schema, "type": name} for name in types] if isinstance(types, list) else [schema]


def _has_type(sent: Schema, read: Schema) -> bool:
    """Return whether values of the type that is sent are of the type that the other side knows."""
    if "type" not in read:
        return True
    own = sent.get("type")
    return bool(own == read["type"] or (own == "integer" and read["type"] == "number"))


def _is_within(name: str, sent: Schema, read: Schema) -> bool:
    if name not in sent:
        return False
    return bool(sent[name] <= read[name] if name in UPPER_BOUNDS else sent[name] >= read[name])
