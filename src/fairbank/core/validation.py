"""Validation errors of msgspec in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from msgspec import DecodeError, Struct, ValidationError, inspect

from fairbank.core.errors import InvalidInput

_WHERE = re.compile(r"(?P<text>.*?) - at `(?:key in )?\$(?P<path>.*)`", re.DOTALL)
_FIELD = re.compile(
    r"Object (?P<kind>contains unknown|missing required) field `(?P<field>.*)`", re.DOTALL
)
WORD = r"^[!-~]+\Z"
"""Pattern of texts that are one word. Its end is not `$`, which would accept a line end."""
_PATTERNS = {"^/": "absolute path", WORD: "one word of printable ASCII characters"}
_PATTERN = re.compile(r"`str`( \| null)? matching regex '(.*)'")
_INDEX = re.compile(r"\[[^]]*\]")
"""Index into a table or a list, in msgspec's path."""
PATH_PART = re.compile(r"[^].[]+")
SHOWN_MAX = 40
"""Characters of an invalid value that a message shows."""
_TYPES = re.compile(r"(?P<got>got )?`(?P<types>\w+(?: \| \w+)*)`")
_BOUND = re.compile(r"Expected `int` ([<>]=) (-?\d+)")
_COMPARISON = re.compile(r" ([<>]=) (-?\d+)$")
_LENGTH = re.compile(r" of length ([<>]=) (\d+)")
_RENAMED_KEYS = {"counter": "write_queue", "silence": "outage_policy", "ahead": "optimistic_start"}
"""New names of keys in settings files from before the first release."""
_TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def is_cut_short(error: DecodeError) -> bool:
    """Return True if the input of msgspec ended too early."""
    return "truncated" in str(error)


class ValidationFault(NamedTuple):
    """A validation error of msgspec, taken apart. Nothing else reads the texts of msgspec."""

    kind: Literal["unknown field", "missing field", "invalid value"]
    path: str  # of the field; empty for the whole input
    text: str  # msgspec's sentence without the path

    @classmethod
    def of(cls, error: ValidationError, inside: str = "") -> ValidationFault:
        """Take an error of msgspec apart; `inside` is the path of the value that was checked."""
        text, path = str(error), inside
        if where := _WHERE.fullmatch(text):
            text, path = where["text"], f"{inside}{where['path']}".lstrip(".")
        if field := _FIELD.fullmatch(text):
            path = f"{path}.{field['field']}".lstrip(".")
            is_unknown = field["kind"] == "contains unknown"
            return cls("unknown field" if is_unknown else "missing field", path, text)
        return cls("invalid value", path, text)

    @property
    def has_bound(self) -> bool:
        """True if a whole number is out of range."""
        return _BOUND.fullmatch(self.text) is not None

    @property
    def is_unknown_value(self) -> bool:
        """True if the value is none of the accepted ones. msgspec's sentence repeats it then."""
        return self.text.startswith(("Invalid enum value", "Invalid value"))

    @property
    def message(self) -> str:
        """msgspec's sentence in plain words: "expected a whole number, or nothing, got text"."""
        text = _PATTERN.sub(
            _pattern_words, self.text.replace("Invalid decimal string", "Expected `float`")
        )
        words = _TYPES.sub(_type_words, text)
        words = _LENGTH.sub(lambda length: f", {self._length_words(length)}", words)
        words = _COMPARISON.sub(
            lambda m: f" of at {'least' if m[1] == '>=' else 'most'} {m[2]}", words
        )
        return words[:1].lower() + words[1:200]

    @property
    def remedy(self) -> str | None:
        """Accepted type or range, if the text of msgspec names it; otherwise None."""
        expected = self.text.partition(",")[0].replace(" | null", "")
        if self.text.startswith("Number out of range") or expected == "Expected `int`":
            return "send a whole number: no quotes, no fraction, no exponent"
        if self.text == "Invalid decimal string":
            return "send a number such as 1.5"
        if expected == "Expected `bool`":
            return "true or false"
        if length := _LENGTH.search(self.text):
            return self._length_words(length)
        if bound := _BOUND.fullmatch(self.text):
            return f"at {'least' if bound[1] == '>=' else 'most'} {bound[2]}"
        return None

    def _length_words(self, length: re.Match[str]) -> str:
        """Return the accepted length: "at most 255 characters"."""
        unit = "character" if "`str`" in self.text else "element"
        plural = "" if length[2] == "1" else "s"
        return f"at {'least' if length[1] == '>=' else 'most'} {length[2]} {unit}{plural}"


def _pattern_words(match: re.Match[str]) -> str:
    words = _PATTERNS.get(match[2].replace("\\\\", "\\"), "text of another form")
    return f"{words}, or nothing" if match[1] else words


def _type_words(match: re.Match[str]) -> str:
    types, received = match["types"].split(" | "), match["got"] or ""
    if received and types == ["float"]:  # where a whole number is expected: 5.0 is none
        return "got a number with a fraction or an exponent"
    words = " or ".join(_TYPE_WORDS.get(name, f'"{name}"') for name in types if name != "null")
    return received + (f"{words}, or nothing" if words and "null" in types else words or "null")


def describe_invalid_setting(
    error: ValidationError, content: object, settings: type[Struct], inside: str = ""
) -> InvalidInput:
    """Translate a validation error of msgspec into the words of the settings file.

    The remedy lists the known keys or values, or says which values are accepted.

    Args:
        error: the error that msgspec raised.
        content: the value that was checked, such as the table of a TOML file.
        settings: the type of the whole file.
        inside: path of the table that was being read; empty for the whole file.
    """
    fault = ValidationFault.of(error, inside)
    if fault.kind == "unknown field":
        table, _, key = fault.path.rpartition(".")
        keys = field_names(settings, table)
        if _RENAMED_KEYS.get(key) in keys:
            return InvalidInput(
                f"the file is of an older version: there is no setting {fault.path} any more",
                field=fault.path,
                remedy=f"rename it to {_RENAMED_KEYS[key]}",
            )
        return InvalidInput(
            f"there is no setting {fault.path}",
            field=fault.path,
            remedy=f"there are: {', '.join(keys)}",
        )
    accepted = describe_type(inspect.UnionType(tuple(_shapes_at(settings, fault.path))))
    if fault.kind == "missing field":
        return InvalidInput(
            f"{fault.path} is missing", field=fault.path, remedy=f"add it; accepted: {accepted}"
        )
    values = ", ".join(accepted_values(settings, fault.path))
    wrong = fault.message.replace("an object", "a table")
    message = f"{fault.path}: {wrong}"
    if (value := _shown_value(content, ValidationFault.of(error).path)) is not None:
        wrong = "not an accepted value" if fault.is_unknown_value else wrong
        message = f"{fault.path} is {value}, {wrong}"
    return InvalidInput(
        message, field=fault.path, remedy=f"one of: {values}" if values else f"accepted: {accepted}"
    )


def _shown_value(content: object, path: str) -> str | None:
    """Return the beginning of the value at a path such as `nodes[0].cpus`; None if it is not known:
    msgspec writes `[...]` for the keys of a mapping.
    """
    if "..." in path:
        return None
    for part in PATH_PART.findall(path):
        if isinstance(content, dict) and part in content:
            content = content[part]
        elif isinstance(content, list) and part.isdecimal():
            content = content[int(part)]
        else:
            return None
    text = json.dumps(content, default=str, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def field_names(kind: Any, path: str) -> list[str]:
    """Return the names of the fields at this path, if it is a table of fixed fields."""
    return [
        field.encode_name
        for shape in _shapes_at(kind, path)
        if isinstance(shape, inspect.StructType)
        for field in shape.fields
    ]


def accepted_values(kind: Any, path: str) -> list[str]:
    """Return the values that the field at this path accepts, if they are few and known."""
    values: list[str] = []
    for shape in _shapes_at(kind, path):
        match shape:
            case inspect.EnumType():
                values += [str(member.value) for member in shape.cls]
            case inspect.LiteralType():
                values += [str(value) for value in shape.values]
            case inspect.NoneType():
                pass
            case _:
                return []
    return values


def describe_type(shape: inspect.Type, plural: str = "", unit: str = "") -> str:
    """Return the accepted values in words, such as "whole number of seconds from 1 to 64".

    Args:
        shape: the type.
        plural: "s" in a list.
        unit: " of seconds" and the like.
    """
    match shape:
        case inspect.Metadata():
            return describe_type(shape.type, plural, f" of {(shape.extra or {})['unit']}")
        case inspect.UnionType():
            members = [member for member in shape.types if not isinstance(member, inspect.NoneType)]
            return " or ".join(describe_type(member, plural) for member in members)
        case inspect.LiteralType():
            return " or ".join(f'"{value}"' for value in shape.values)
        case inspect.EnumType():
            return " or ".join(f'"{member.value}"' for member in shape.cls)
        case inspect.IntType():
            return f"whole number{plural}{unit}{_range(shape)}"
        case inspect.FloatType():
            return f"number{plural}{unit}{_range(shape)}"
        case inspect.StrType():
            return f"{_PATTERNS.get(shape.pattern or '', 'text')}{plural}"
        case inspect.BoolType():
            return "true or false"
        case inspect.DictType():
            return f"{describe_type(shape.value_type, 's')} by name"
        case inspect.CollectionType():
            return f"list of {describe_type(shape.item_type, 's')}"
        case inspect.StructType():
            return f"table{plural}"
    return f"number{plural}"


def _range(number: inspect.IntType | inspect.FloatType) -> str:
    low, above, high = number.ge, number.gt, number.le
    if low is not None and high is not None:
        return f" from {low} to {high}"
    least = (
        f", at least {low}" if low is not None else f" above {above}" if above is not None else ""
    )
    return least + (f", at most {high}" if high is not None else "")


def _shapes_at(kind: Any, path: str) -> Iterator[inspect.Type]:
    keys = _INDEX.sub(".*", path).split(".") if path else []
    return _descend(inspect.type_info(kind), keys)


def _descend(shape: inspect.Type, keys: list[str]) -> Iterator[inspect.Type]:
    match shape:
        case inspect.UnionType():
            for member in shape.types:
                yield from _descend(member, keys)
        case _ if not keys:
            yield shape
        case inspect.StructType() if shape.tag_field == keys[0]:
            yield inspect.LiteralType((str(shape.tag),))
        case inspect.StructType():
            for field in shape.fields:
                if field.encode_name == keys[0]:
                    yield from _descend(field.type, keys[1:])
        case inspect.DictType():
            yield from _descend(shape.value_type, keys[1:])
        case inspect.CollectionType():
            yield from _descend(shape.item_type, keys[1:])


@contextmanager
def validated_settings(name: str, content: object, settings: type[Struct]) -> Iterator[None]:
    """Translate validation errors inside the `with` block.

    Args:
        name: the name of the file, for messages.
        content: the table of the file.
        settings: the type that is read inside the block.

    Raises:
        InvalidInput: a key or value is invalid; `field` names it.
    """
    try:
        yield
    except ValidationError as error:
        bad = describe_invalid_setting(error, content, settings)
        raise InvalidInput(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from error
    except InvalidInput as bad:
        raise InvalidInput(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad
