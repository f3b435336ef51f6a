"""Fields of the routes' answers: a kept copy has those that clients may rely on. Within a version
fields are only added. WRITE_GOLDEN=1 adds new ones to the copy; a field that is removed or has
another type needs a new version of its schema.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from tests.rest.world import PI, World
from tests.support.golden import GOLDEN
from tools.reference.route_schemas import route_schemas

KEPT = GOLDEN / "rest" / "answers.json"
SCHEMAS: Mapping[str, Any] = json.loads(route_schemas())
Fields = dict[str, dict[str, Any]]


def fields() -> Fields:
    """Return the type of each field, and whether it is always there, by the name of its object."""
    return {
        name: {
            field: [_type(schema), field in shape.get("required", ())]
            for field, schema in shape["properties"].items()
        }
        for name, shape in SCHEMAS["$defs"].items()
        if "properties" in shape
    }


def _type(schema: Mapping[str, Any]) -> Any:
    """Return what a client may rely on: all but the texts, and further words of an enumeration."""
    if "enum" in schema:
        return "word"
    parts = {key: schema[key] for key in ("type", "$ref", "anyOf", "items") if key in schema}
    return {
        key: list(map(_type, part)) if key == "anyOf" else _type(part) if key == "items" else part
        for key, part in parts.items()
    }


def lost(kept: Fields, present: Fields) -> list[str]:
    """Return the fields of the copy that are not there any more, or are otherwise."""
    return [
        f"{name}.{field}"
        for name, shape in kept.items()
        for field, schema in shape.items()
        if present.get(name, {}).get(field) != schema
    ]


def test_fields_of_answers_are_only_added() -> None:
    present = fields()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    assert lost(kept, present) == [], "needs a new version of the schema"
    if os.environ.get("WRITE_GOLDEN"):
        KEPT.parent.mkdir(exist_ok=True)
        lines = [f"{json.dumps(name)}: {json.dumps(shape)}" for name, shape in present.items()]
        KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        kept = present
    assert kept == present, "new fields: keep them with WRITE_GOLDEN=1"


def test_removed_and_changed_fields_are_found() -> None:
    present = fields()
    name, shape = next((name, dict(shape)) for name, shape in present.items() if len(shape) > 1)
    field, *_ = shape
    assert lost(present, {**present, name: {**shape, "new": ["string", True]}}) == []
    assert lost(present, {**present, name: {**shape, field: ["other", True]}}) == [
        f"{name}.{field}"
    ]
    del shape[field]
    assert lost(present, {**present, name: shape}) == [f"{name}.{field}"]


def test_published_schema_describes_an_answer(shared_world: World) -> None:
    answer = shared_world.ask("GET", "/balance", PI).json()
    schema = {**SCHEMAS, "$ref": "#/$defs/ListResponse_BalanceRow_"}
    jsonschema_rs.validate(schema, answer)
    row = answer["data"][0]
    assert not jsonschema_rs.is_valid(schema, {**answer, "data": [{**row, "held": 1.5}]})
