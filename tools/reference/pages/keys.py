"""Tables of settings: every key with its accepted values and default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from inspect import cleandoc

import msgspec

from fairbank.core.validation import describe_type


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
            describe_type(msgspec.inspect.type_info(field.type)),
            "must be given" if field.required else _default(field),
        )


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "none" if field.default_factory in (dict, list) else "empty"
    value = field.default
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, frozenset):
        return ", ".join(f"`{item}`" for item in sorted(value)) or "none"
    if isinstance(value, msgspec.Struct):
        return "its own defaults"
    return (
        "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"
    )
