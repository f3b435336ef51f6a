"""JSON Schemas of the routes' answers and problems, from their types."""

from __future__ import annotations

import json
import re
from typing import Any

from fairbank.core.units import AMOUNTS
from fairbank.rest.app import document

_REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')


def route_schemas() -> str:
    """Return a JSON Schema that has each answer, and each type in one, under `$defs`."""
    api = document()
    schemas = api["components"]["schemas"]
    answers = [
        operation["responses"] for item in api["paths"].values() for operation in item.values()
    ]
    definitions: dict[str, Any] = {}
    pending = _references(answers)
    while pending:
        name = pending.pop()
        definitions[name] = _with_unit(schemas[name])
        pending |= _references(schemas[name]) - definitions.keys()
    page = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of the routes of Fairbank",
        "$defs": dict(sorted(definitions.items())),
    }
    return _REFERENCE.sub(r'"#/$defs/\1"', json.dumps(page, indent=1)) + "\n"


def _references(schema: object) -> set[str]:
    return set(_REFERENCE.findall(json.dumps(schema)))


def _with_unit(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object in which amounts have their unit as description."""
    properties = schema.get("properties", {})
    described = {
        name: {**field, "description": "SU-minutes"} if name in AMOUNTS else field
        for name, field in properties.items()
    }
    text = (
        {"description": " ".join(schema["description"].split())} if "description" in schema else {}
    )
    return {**schema, **text, **({"properties": described} if described else {})}
