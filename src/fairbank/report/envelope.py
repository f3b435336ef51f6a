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
