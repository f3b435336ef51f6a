"""Every route, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairbank.rest.app import ROUTES
from fairbank.rest.openapi import describe


def routes_page() -> str:
    """Every route with its parameters, from the OpenAPI document."""
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
            lines += [f"## {verb.upper()} {path}", "", *_described(operation), ""]
    return "\n".join(lines).rstrip() + "\n"


def _described(operation: Mapping[str, Any]) -> Iterator[str]:
    yield str(operation.get("description") or operation.get("summary") or "")
    parameters = [each for each in operation.get("parameters", []) if each["in"] != "path"]
    if parameters:
        names = ", ".join(f"`{each['name']}`" for each in parameters)
        yield f"\nParameters: {names}."
    yield f"\nStatus: {', '.join(sorted(operation['responses']))}."
