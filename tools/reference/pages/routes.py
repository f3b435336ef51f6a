"""Reference page of the HTTP routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairbank.rest.app import ROUTES
from fairbank.rest.openapi import describe


def routes_page() -> str:
    """Return the page with every route, its parameters and fields, from the OpenAPI document."""
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
                *_operation(operation, document["components"]["schemas"]),
                "",
            ]
    return "\n".join(lines).rstrip() + "\n"


def _operation(operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> Iterator[str]:
    yield str(operation.get("description") or operation.get("summary") or "")
    parameters = [
        parameter for parameter in operation.get("parameters", []) if parameter["in"] != "path"
    ]
    if parameters:
        names = ", ".join(f"`{parameter['name']}`" for parameter in parameters)
        yield f"\nParameters: {names}."
    if "requestBody" in operation:
        ((_, content),) = operation["requestBody"]["content"].items()
        for shape in content["schema"].get("oneOf", [content["schema"]]):
            yield f"\nBody: {_fields(shapes[shape['$ref'].rpartition('/')[2]])}."
    if answers := _answer_names(operation, shapes):
        yield f"\nAnswer: {', '.join(f'`{name}`' for name in answers)}."
    yield f"\nStatus: {', '.join(sorted(operation['responses']))}."


def _answer_names(operation: Mapping[str, Any], shapes: Mapping[str, Any]) -> list[str]:
    """Return the names of the schemas of the answers."""
    schemas = [
        content["schema"]
        for status, response in sorted(operation["responses"].items(), reverse=True)
        for content in response["content"].values()
        if status.startswith("2")
    ]
    options = [option for schema in schemas for option in schema.get("anyOf", [schema])]
    answers = [shapes[option["$ref"].rpartition("/")[2]] for option in options if "$ref" in option]
    fields = [answer["properties"].get("schema", {}) for answer in answers]
    return list(dict.fromkeys(name for field in fields for name in field.get("enum", ())))


def _fields(shape: Mapping[str, Any]) -> str:
    """Return the names of an object's fields, the required ones first."""
    needed = [name for name in shape["properties"] if name in shape.get("required", ())]
    words = {
        name: f"`{name}`{_choices(property_)}" for name, property_ in shape["properties"].items()
    }
    free = [words[name] for name in shape["properties"] if name not in needed]
    parts = [", ".join(words[name] for name in needed)] if needed else []
    return "; ".join([*parts, *([f"may be left out: {', '.join(free)}"] if free else [])])


def _choices(field: Mapping[str, Any]) -> str:
    """Return the allowed values of an enumeration, in parentheses."""
    return f" ({', '.join(f'`{word}`' for word in field['enum'])})" if "enum" in field else ""
