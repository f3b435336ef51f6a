"""Tables of settings: every key with its type and default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

import msgspec


def key_tables(
    tables: Iterable[tuple[str, type[msgspec.Struct]]], *, level: int = 2
) -> Iterator[str]:
    """Yield the lines of a table for each settings class, below its title and docstring."""
    for title, struct in tables:
        yield from (
            f"{'#' * level} {title}",
            "",
            cleandoc(struct.__doc__ or ""),
            "",
            "| Key | Type | Default |",
            "| --- | --- | --- |",
        )
        yield from (f"| `{key}` | {kind} | {default} |" for key, kind, default in _keys(struct))
        yield ""


def _keys(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(struct):
        yield (
            field.name,
            _type_name(field.type),
            "must be given" if field.required else _default(field),
        )


def _type_name(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f'"{each.value}"' for each in kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "a table"
    words = {str: "text", int: "whole number", bool: "true or false", float: "number"}
    if kind in words:
        return words[kind]
    inner = [each for each in get_args(kind) if each is not type(None)]
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(f'"{each}"' for each in inner)
    if origin is dict:
        return (
            "tables by name"
            if isinstance(inner[1], type) and issubclass(inner[1], msgspec.Struct)
            else "numbers by name"
        )
    if origin in (frozenset, list, tuple):
        return f"a list of {_type_name(inner[0])}{'' if get_origin(inner[0]) is Literal else 's'}"
    return " or ".join(_type_name(each) for each in inner if not isinstance(each, msgspec.Meta))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "none" if field.default_factory in (dict, list) else "empty"
    value = field.default
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, frozenset):
        return ", ".join(f"`{each}`" for each in sorted(value)) or "none"
    if isinstance(value, msgspec.Struct):
        return "its own defaults"
    return (
        "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"
    )
