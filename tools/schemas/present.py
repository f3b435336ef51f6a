"""Present schemas of answers and requests, without the texts that are only for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from fairbank.rest.app import document
from fairbank.wlm.protocol import commands
from tools.schemas.comparison import KEYWORDS

COMMANDS = Path(__file__).parents[2] / "docs/reference/schemas/commands"
UNIT = "SU-minutes"
Schemas = dict[str, dict[str, Any]]
"""Schemas by their keys, such as `fairbank.balance/1` or `GET /balance 200 fairbank.balance/1`."""


def present_schemas() -> dict[str, Schemas]:
    """Return the schemas of `answers` and `requests`. A reference is replaced by its schema."""
    api = document()
    types = api["components"]["schemas"]
    learned = [json.loads(path.read_text()) for path in sorted(COMMANDS.glob("*.json"))]
    answers = {schema["title"]: _bare(schema, {}) for schema in learned}
    answers["problem"] = _bare(types["Problem"], types)
    requests: Schemas = {}
    for path, operations in sorted(api["paths"].items()):
        for method, operation in operations.items():
            route = f"{method.upper()} {path}"
            requests[route] = _request(operation, types)
            answers |= {f"{route} {key}": value for key, value in _answers(operation, types)}
    names = commands.REQUESTS.keys()
    bodies, types = msgspec.json.schema_components(
        commands.REQUESTS.values(), ref_template="#/components/schemas/{name}"
    )
    for name, body in zip(names, bodies, strict=True):
        requests[f"cluster {name}/{commands.VERSION}"] = _bare(body, types)
    # Defaults of Python become values of JSON.
    schemas: dict[str, Schemas] = json.loads(json.dumps({"answers": answers, "requests": requests}))
    return schemas


def _answers(operation: dict[str, Any], types: Schemas) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the successful answers of a route by their status and the name of their schema."""
    for status, response in operation["responses"].items():
        if not status.startswith("2"):
            continue
        ((_, content),) = response["content"].items()
        for schema in content["schema"].get("anyOf", [content["schema"]]):
            bare = _bare(schema, types)
            named = bare.get("properties", {}).get("schema", {}).get("enum", [])
            yield " ".join([status, *named]), bare


def _request(operation: dict[str, Any], types: Schemas) -> dict[str, Any]:
    """Return the parameters and the body of a route as fields of one object."""
    parts = {f"{part['in']} {part['name']}": part for part in operation.get("parameters", ())}
    if body := operation.get("requestBody"):
        ((_, content),) = body["content"].items()
        parts["body"] = {**content, "required": body["required"]}
    return {
        "type": "object",
        "properties": {name: _bare(part["schema"], types) for name, part in parts.items()},
        "required": sorted(name for name, part in parts.items() if part.get("required")),
        "additionalProperties": False,
    }


def _bare(schema: dict[str, Any], types: Schemas) -> dict[str, Any]:
    """Return a schema without titles, examples, and descriptions that are no unit."""
    if "$ref" in schema:
        return _bare(types[schema["$ref"].rpartition("/")[2]], types)
    bare: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("$schema", "title", "examples") or (key == "description" and value != UNIT):
            continue
        if key not in KEYWORDS:
            raise ValueError(f"the keyword {key!r} of a schema is not known to the comparison")
        if key == "properties":
            value = {name: _bare(part, types) for name, part in value.items()}
        elif key in ("anyOf", "oneOf"):
            value = [_bare(part, types) for part in value]
        elif isinstance(value, dict) and key != "default":
            value = _bare(value, types)
        bare[key] = value
    return bare
