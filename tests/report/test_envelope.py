"""JSON output of the reports."""

from __future__ import annotations

import json

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.report.columns import Column, DisplayFormat, su, text
from fairbank.report.tables import JsonSource, as_json, envelope, sort_rows

NOWHERE = JsonSource()
ROW = {"id": 1, "account": "chem\x1b[31m", "available": 90, "state": "active"}


def test_amounts_are_integers_and_text_never_floats() -> None:
    document = envelope(
        "fairbank.balance/1",
        JsonSource("centre", "2026-11-21T12:30:12Z", "darwin"),
        [ROW],
        ["! look"],
        DisplayFormat(separators=True),
    )
    assert document == {
        "schema": "fairbank.balance/1",
        "bank": "centre",
        "as_of": "2026-11-21T12:30:12Z",
        "cluster": "darwin",
        "amounts_in": "SU-minutes",
        "unit": "h",
        "data": [{**ROW, "display": {"available": "1.50"}}],
        "warnings": ["! look"],
    }
    assert envelope("x/1", NOWHERE, [ROW], [], DisplayFormat(units="m"))["data"][0]["display"] == {
        "available": "90"
    }
    assert envelope("x/1", NOWHERE, [{"id": 1}], [], DisplayFormat())["data"] == [{"id": 1}]


def test_amounts_inside_other_objects_have_display_texts_too() -> None:
    more = {"quote": {"total": 90, "after": -31}, "parts": [{"held": 6}]}
    document = envelope("x/1", NOWHERE, ROW, [], DisplayFormat(), more)
    assert document["data"]["display"] == {"available": "1.50"}
    assert document["quote"]["display"] == {"total": "1.50", "after": "-0.52"}
    assert document["parts"] == [{"held": 6, "display": {"held": "0.10"}}]


def test_json_has_no_control_characters() -> None:
    document = as_json(envelope("x/1", NOWHERE, [ROW], ["\u202e"], DisplayFormat()))
    assert document.isascii()
    assert "\x1b" not in document
    assert json.loads(document)["data"][0]["account"] == ROW["account"]


COLUMNS = (Column("PROJECT", text("account")), Column("AVAILABLE", su("available"), right=True))
ROWS = [
    {"account": "b", "available": 600},
    {"account": "a", "available": 9},
    {"account": "c", "available": 600},
]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("PROJECT", "abc"),
        ("-PROJECT", "cba"),
        ("AVAILABLE", "abc"),
        ("-AVAILABLE", "bca"),
        ("-available,-project", "cba"),
    ],
)
def test_rows_are_sorted_by_columns(sort: str, order: str) -> None:
    assert (
        "".join(
            row["account"] for row in sort_rows(COLUMNS, ROWS, sort, DisplayFormat(separators=True))
        )
        == order
    )


def test_unknown_sort_column_is_reported() -> None:
    with pytest.raises(InvalidInput, match="no column 'nope'"):
        sort_rows(COLUMNS, ROWS, "nope", DisplayFormat())
