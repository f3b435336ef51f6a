"""JSON Schemas of the routes' answers, as published in the reference."""

from __future__ import annotations

import json

import jsonschema_rs

from tests.rest.world import PI, World
from tools.reference.route_schemas import route_schemas


def test_published_schema_describes_an_answer(shared_world: World) -> None:
    answer = shared_world.ask("GET", "/balance", PI).json()
    schema = {**json.loads(route_schemas()), "$ref": "#/$defs/ListResponse_BalanceRow_"}
    jsonschema_rs.validate(schema, answer)
    row = answer["data"][0]
    assert not jsonschema_rs.is_valid(schema, {**answer, "data": [{**row, "held": 1.5}]})
    assert not jsonschema_rs.is_valid(schema, {**answer, "schema": "fairbank.balance/2"})
