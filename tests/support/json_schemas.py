"""JSON Schemas of the commands' answers, in docs/reference/schemas/commands: one file per schema.

They are learned from the answers in the tests, and from the types of the bank's rows. An answer
with a field or a type that its file does not have, or without a field that it requires, fails its
test. WRITE_GOLDEN=1 adds what is new, and requires only what all answers have. `make check`
compares the files with the published schemas (tools/schemas).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import currently_in_test_context

from fairbank.core.units import AMOUNTS
from fairbank.rest.app import document as openapi_document
from tests.support.json_contract import check_json

FOLDER = Path(__file__).parents[2] / "docs/reference/schemas/commands"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAPS = frozenset("changed details display tres".split())
"""Objects whose names are data."""
TEXT, TEXT_OR_NULL = {"type": "string"}, {"type": ["null", "string"]}
ENVELOPE = {
    "schema": TEXT,
    "bank": TEXT_OR_NULL,
    "as_of": TEXT_OR_NULL,
    "cluster": TEXT_OR_NULL,
    "amounts_in": {"type": "string", "const": "SU-minutes"},
    "unit": {"type": "string", "enum": ["m", "h", "k", "M"]},
    "data": {},
    "warnings": {"type": "array", "items": TEXT},
}
"""Fields of each answer."""
ROWS = {
    "fairbank.allocation/1": "AllocationRow",
    "fairbank.balance/1": "BalanceRow",
    "fairbank.allocation-use/1": "AllocationUserRow",
    "fairbank.failure/1": "FailureRow",
    "fairbank.granted/1": "Granted",
    "fairbank.job/1": "JobRow",
    "fairbank.member/1": "MemberRow",
    "fairbank.planned-entry/1": "PlannedEntry",
    "fairbank.project/1": "ProjectRow",
    "fairbank.quote-line/1": "QuoteLine",
    "fairbank.share-day/1": "ShareDay",
    "fairbank.statement-entry/1": "StatementRow",
    "fairbank.token/1": "TokenRow",
    "fairbank.usage/2": "UsageRow",
    "fairbank.whoami/1": "Myself",
    "allocation": "AllocationRow",
    "balances": "BalanceRow",
    "closing": "Sums",
    "opening": "Sums",
    "partitions": "PartitionQuote",
    "project": "ProjectRow",
    "quote": "JobQuote",
    "refused": "FailureRow",
    "running": "JobRow",
    "totals": "UsageRow",
}
"""Types of the bank's rows, by the schema of which they are the data, and by field."""
EMPTY = {
    "cluster": "string",
    "cost": "integer",
    "error": "string",
    "fair_starts_checked": "integer",
    "fingerprint": "string",
    "later_state": "string",
    "mean_late_seconds": "number",
    "unfair_starts": "number",
    "unpaid_part": "number",
}
"""Types of fields that are null in each answer of some command in the tests."""
TYPES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def check_output(words: Sequence[object], output: str) -> None:
    """Check the JSON that a command printed, if it was to print JSON and did not fail before."""
    if "--json" not in words or not output.startswith("{"):
        return
    document = json.loads(output)
    check_json(document)
    # Random arguments can lead to an answer that no other test has.
    if "schema" in document and not currently_in_test_context():
        check_schema(document)


def check_schema(document: dict[str, Any]) -> None:
    """Check that the published schema describes an answer; with WRITE_GOLDEN, add to it first."""
    name = str(document["schema"])
    path = schema_file(name)
    first = {"$schema": DIALECT, "title": name, "properties": ENVELOPE}
    old = json.loads(path.read_text()) if path.exists() else first
    new = merged(old, document, data=name)
    if os.environ.get("WRITE_GOLDEN") and new != old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(new, indent=1) + "\n")
        return
    assert new == old, (
        f"{name}: {list(_differences(old, new, '$'))}; see tests.support.json_schemas"
    )


def check_shared_schema(document: dict[str, Any]) -> None:
    """Check that a command's schema of the same name describes each field of a route's answer.

    A schema names one kind of object: `data` is one of them, or a list. If commands have it, they
    have the same version.
    """
    name = str(document.get("schema"))
    path = schema_file(name)
    others = [other.name for other in FOLDER.glob(f"{name.partition('/')[0]}-[0-9]*.json")]
    assert path.name in others or not others, (name, others)
    if others:
        schema = json.loads(path.read_text())["properties"]["data"]
        known = {*schema.get("items", {}).get("properties", ()), *schema.get("properties", ())}
        data = document["data"]
        for row in data if isinstance(data, list) else [data]:
            assert row.keys() <= known, f"{path.name} lacks {sorted(row.keys() - known)}"


def schema_file(name: str) -> Path:
    """Return the file of a schema such as `fairbank.balance/1`."""
    return FOLDER / f"{name.replace('/', '-')}.json"


def merged(
    schema: dict[str, Any],
    value: Any,
    name: str = "",
    *,
    data: str = "",
    more: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return a schema that describes a value besides those that it describes already.

    Args:
        schema: to add to.
        value: of a field, or an item of a list.
        name: of the field.
        data: name of the schema if this is a whole answer.
        more: further types that the field may have.
    """
    new = dict(schema)
    known = schema.get("type", [])
    types = {TYPES[type(value)], *([known] if isinstance(known, str) else known), *more}
    types |= {EMPTY[name]} if types == {"null"} and name in EMPTY else set()
    types -= {"integer"} if "number" in types else set()
    new["type"] = min(types) if len(types) == 1 else sorted(types)
    if name in AMOUNTS and "integer" in types:
        new["description"] = "SU-minutes"
    if isinstance(value, list):
        for item in value:
            new["items"] = merged(new.get("items", {}), item, name)
    is_map = name in MAPS or "additionalProperties" in schema
    if isinstance(value, dict) and (is_map or _has_data_as_names(value)):
        new = {key: part for key, part in new.items() if key not in ("properties", "required")}
        for item in value.values():
            new["additionalProperties"] = merged(new.get("additionalProperties", {}), item)
    elif isinstance(value, dict):
        properties = dict(schema.get("properties", {}))
        row = openapi_document()["components"]["schemas"].get(ROWS.get(name), {"properties": {}})
        for key, item in value.items():
            more = _types_of(row["properties"].get(key, {}))
            place = data if data and key == "data" else key
            properties[key] = merged(properties.get(key, {}), item, place, more=more)
        required = value.keys() & set(schema.get("required", value))
        new |= {"properties": properties, "required": sorted(required)}
    return new


def _types_of(schema: dict[str, Any]) -> frozenset[str]:
    """Return the types of a field in the schema of the bank's row."""
    if "anyOf" in schema:
        return frozenset().union(*map(_types_of, schema["anyOf"]))
    if "enum" in schema:
        return frozenset(TYPES[type(word)] for word in schema["enum"])
    known = schema.get("type", [])
    return frozenset([known] if isinstance(known, str) else known)


def _has_data_as_names(value: dict[str, Any]) -> bool:
    """Return whether an object has names that no field has, such as `left out` or `gres/gpu`."""
    return any(not key.replace("_", "").isalnum() or not key.islower() for key in value)


def _differences(old: Any, new: Any, place: str) -> Any:
    """Yield the places where a schema would change."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            yield from _differences(old.get(key), new.get(key), f"{place}.{key}")
    elif old != new:
        yield f"{place}: {old!r} -> {new!r}"
