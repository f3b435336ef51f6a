"""Strict reading of settings files: TOML, with the key and the accepted values in each error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, ValidationError, inspect

from fairbank.core.errors import InvalidInput

_WHERE = re.compile(r"(?P<what>.*?) - at `(?:key in )?\$\.?(?P<path>.*)`", re.DOTALL)
_EACH = re.compile(r"\[[^]]*\]")
"""Index into a table or a list, in msgspec's path."""
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
}


def describe_invalid_setting(
    error: ValidationError, settings: type[Struct], page: str
) -> InvalidInput:
    """Translate a validation error of msgspec into the words of the settings file.

    The remedy lists the known keys or values if they are few, otherwise it names the page.

    Args:
        error: the error that msgspec raised.
        settings: the type that was being read.
        page: the documentation page that lists all keys.
    """
    said, path = str(error), ""
    if where := _WHERE.fullmatch(said):
        said, path = where["what"], where["path"]
    all_keys = f"{page} lists all settings"
    if unknown := _UNKNOWN.fullmatch(said):
        field, there = f"{path}.{unknown[1]}".lstrip("."), ", ".join(_choice(settings, path))
        return InvalidInput(
            f"{field} is no setting",
            field=field,
            remedy=f"there are: {there}" if there else all_keys,
        )
    if missing := _MISSING.fullmatch(said):
        field = f"{path}.{missing[1]}".lstrip(".")
        return InvalidInput(f"{field} is missing", field=field, remedy=f"add it; {all_keys}")
    words = re.sub(
        r"`([a-z]+)(?: \| null)?`", lambda found: _WORDS.get(found[1], f'"{found[1]}"'), said
    )
    choice = ", ".join(_choice(settings, path)) if said.startswith("Invalid enum value") else ""
    return InvalidInput(
        f"{path}: {words[:1].lower()}{words[1:]}",
        field=path,
        remedy=f"one of: {choice}" if choice else all_keys,
    )


def _choice(settings: type[Struct], path: str) -> list[str]:
    """Return the keys of the table at this path, or the values that it accepts."""
    keys = _EACH.sub(".*", path).split(".") if path else []
    return [each for shape in _at(inspect.type_info(settings), keys) for each in _names(shape)]


def _at(shape: inspect.Type, keys: list[str]) -> Iterator[inspect.Type]:
    match shape:
        case inspect.UnionType():
            for each in shape.types:
                yield from _at(each, keys)
        case _ if not keys:
            yield shape
        case inspect.StructType():
            for field in shape.fields:
                if field.encode_name == keys[0]:
                    yield from _at(field.type, keys[1:])
        case inspect.DictType():
            yield from _at(shape.value_type, keys[1:])
        case inspect.CollectionType():
            yield from _at(shape.item_type, keys[1:])


def _names(shape: inspect.Type) -> list[str]:
    match shape:
        case inspect.StructType():
            return [field.encode_name for field in shape.fields]
        case inspect.EnumType():
            return [str(each.value) for each in shape.cls]
        case inspect.LiteralType():
            return [str(each) for each in shape.values]
        case _:
            return []


def parse_toml(text: bytes, name: str, *, field: str) -> dict[str, Any]:
    """Parse the text of a TOML file.

    Args:
        text: the content of the file.
        name: the name of the file, for messages.
        field: the option that named the file.

    Raises:
        InvalidInput: the text is not TOML.
    """
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(
            f"{name} is not TOML: {bad}", field=field, remedy="mend the line named"
        ) from bad


@contextmanager
def validated_settings(name: str, settings: type[Struct], page: str) -> Iterator[None]:
    """Translate validation errors inside the `with` block.

    Args:
        name: the name of the file, for messages.
        settings: the type that is read inside the block.
        page: the documentation page that lists all keys.

    Raises:
        InvalidInput: a key or value is invalid; `field` names it.
    """
    try:
        yield
    except ValidationError as error:
        bad = describe_invalid_setting(error, settings, page)
        raise InvalidInput(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from error
    except InvalidInput as bad:
        raise InvalidInput(f"{name}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad
