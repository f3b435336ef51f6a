"""JSON output: a named and versioned schema, amounts in SU-minutes and as people read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fairbank.report.columns import Look, Row

AMOUNTS = frozenset(
    "amount asked available cap charged cost credit_limit deposited held left left_over pace"
    " refunded returned shortfall written_off".split()
)
"""Names of fields that are amounts."""
LEFT = frozenset({"available", "left"})
"""Amounts that can still be used, which are rounded down below zero too."""
ADDING_UP = frozenset({"deposited", "charged", "held", "available"})
"""Fields that add up, with a credit limit if there is one."""

LACKING = frozenset({"asked", "available", "shortfall"})
"""Fields of which the last is the difference of the others, as shown."""


def envelope(
    schema: str,
    as_of: str | None,
    cluster: str | None,
    data: Sequence[Row],
    warnings: Sequence[str],
    look: Look,
) -> dict[str, Any]:
    """Return what `--json` prints.

    Each row keeps the bank's fields, with exact amounts; `display` has the amounts as text in
    `unit`, as a table shows them.
    """
    plainly = look._replace(separators=False)
    return {
        "schema": schema,
        "as_of": as_of,
        "cluster": cluster,
        "unit": look.units,
        "data": [_with_display(row, plainly) for row in data],
        "warnings": list(warnings),
    }


def _with_display(row: Row, look: Look) -> dict[str, Any]:
    amounts = {
        name: value for name, value in row.items() if name in AMOUNTS and isinstance(value, int)
    }
    display = {
        name: look.left(value) if name in LEFT else look.su(value)
        for name, value in amounts.items()
    }
    if amounts.keys() >= ADDING_UP:
        sums = look.sums(*(amounts[name] for name in ("deposited", "charged", "held", "available")))
        display |= {"charged": sums.used, "held": sums.held} | (
            {"credit_limit": sums.limit} if "credit_limit" in amounts else {}
        )
    if amounts.keys() >= LACKING:
        display["shortfall"] = look.lacking(amounts["asked"], amounts["available"])
    return {**row, "display": display} if display else dict(row)


def as_json(document: Mapping[str, Any]) -> str:
    """Return indented JSON, ASCII only, so that no character affects a terminal."""
    return json.dumps(document, indent=2)


def as_yaml(document: Mapping[str, Any]) -> str:
    """The same as YAML: blocks for objects and lists, JSON's spelling for everything in them.

    Keys are names of fields: YAML takes none of more than 1,024 characters, escapes counted.
    """
    return "\n".join(_block(document, ""))


def _block(value: Any, indent: str) -> list[str]:
    lines: list[str] = []
    if isinstance(value, Mapping):
        for key, each in value.items():
            lines += _item(f"{indent}{_key(key)}:", each, indent + "  ")
    else:
        for each in value:
            nested = (
                _block(each, indent + "  ")
                if isinstance(each, Mapping | list) and each
                else [f"{indent}  {_scalar(each)}"]
            )
            lines += [f"{indent}- {nested[0].lstrip()}", *nested[1:]]
    return lines


def _item(head: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping | list) and value:
        return [head, *_block(value, indent)]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    """JSON's spelling, which YAML reads, but for characters beyond 16 bits."""
    if not isinstance(value, str):
        return json.dumps(value)
    return (
        '"'
        + "".join(
            json.dumps(each)[1:-1] if ord(each) < 0x10000 else f"\\U{ord(each):08x}"
            for each in value
        )
        + '"'
    )


def _key(key: str) -> str:
    return (
        key
        if key.isascii()
        and key.replace("_", "a").isalnum()
        and not key[0].isdigit()
        and key not in _WORDS
        else _scalar(key)
    )


_WORDS = frozenset(
    "y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null"
    " NULL".split()
)
