"""Every route, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairbank.rest.app import ROUTES
from fairbank.rest.openapi import describe


def routes_page() -> str:
    """Every route with its parameters and the fields of its body, from the OpenAPI document."""
    document = describe(ROUTES)
    lines = [
        "# Routes",
        "",
        *str(document["info"]["description"]).splitlines(),
        "",
        "A server shows the whole document at `/openapi.json` and a page to browse it at `/docs`.",
        "",
    ]
    for path, item in sorted(document["paths"].items()):
        for verb, operation in item.items():
            lines += [
                f"## {verb.upper()} {path}",
                "",
                *_described(operation, document["components"]["schemas"]),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def _described(operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[str]:
    yield str(operation.get("description") or operation.get("summary") or "")
    parameters = [each for each in operation.get("parameters", []) if each["in"] != "path"]
    if parameters:
        names = ", ".join(f"`{each['name']}`" for each in parameters)
        yield f"\nParameters: {names}."
    if "requestBody" in operation:
        ((_, content),) = operation["requestBody"]["content"].items()
        for shape in content["schema"].get("oneOf", [content["schema"]]):
            yield f"\nBody: {_fields(shapes[shape['$ref'].rpartition('/')[2]])}."
    yield f"\nStatus: {', '.join(sorted(operation['responses']))}."


def _fields(shape: Mapping[str, Any]) -> str:
    """The names of an object's fields, those that must be there first: `amount`, `comment`; may be left out: `key`."""
    needed = [name for name in shape["properties"] if name in shape.get("required", ())]
    words = {name: f"`{name}`{_words(each)}" for name, each in shape["properties"].items()}
    free = [words[name] for name in shape["properties"] if name not in needed]
    parts = [", ".join(words[name] for name in needed)] if needed else []
    return "; ".join([*parts, *([f"may be left out: {', '.join(free)}"] if free else [])])


def _words(field: Mapping[str, Any]) -> str:
    """The words that a field takes, where it takes certain words only."""
    return f" ({', '.join(f'`{word}`' for word in field['enum'])})" if "enum" in field else ""
