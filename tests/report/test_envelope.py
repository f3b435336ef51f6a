"""The answer as JSON and YAML."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import Malformed
from fairbank.report.columns import Column, Look, su, text
from fairbank.report.envelope import as_json, as_yaml, envelope
from fairbank.report.tables import sort_rows

yaml = pytest.importorskip("yaml")

ROW = {"id": 1, "account": "chem\x1b[31m", "available": 90, "state": "active"}


def test_amounts_are_integers_and_text_never_floats() -> None:
    made = envelope(
        "fairbank.balance/1",
        "2026-11-21T12:30:12Z",
        "darwin",
        [ROW],
        ["! look"],
        Look(separators=True),
    )
    assert made == {
        "schema": "fairbank.balance/1",
        "as_of": "2026-11-21T12:30:12Z",
        "cluster": "darwin",
        "unit": "h",
        "data": [{**ROW, "display": {"available": "1.50"}}],
        "warnings": ["! look"],
    }
    assert envelope("x/1", None, None, [ROW], [], Look(units="m"))["data"][0]["display"] == {
        "available": "90"
    }
    assert envelope("x/1", None, None, [{"id": 1}], [], Look())["data"] == [{"id": 1}]


def test_json_does_nothing_to_a_terminal() -> None:
    made = as_json(envelope("x/1", None, None, [ROW], ["\u202e"], Look()))
    assert made.isascii()
    assert "\x1b" not in made
    assert json.loads(made)["data"][0]["account"] == ROW["account"]


leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text()
# YAML's keys end at 1,024 characters, and one may take ten of them when it is escaped.
words = st.text(min_size=1, max_size=100) | st.sampled_from(
    ["yes", "no", "null", "on", "y", "1", "a-b", "a: b"]
)
documents = st.dictionaries(
    words,
    st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


@given(documents.filter(bool))
def test_yaml_reads_back_as_the_same(document: dict[str, Any]) -> None:
    assert yaml.safe_load(as_yaml(document)) == document


COLUMNS = (Column("PROJECT", text("account")), Column("AVAILABLE", su("available"), right=True))
ROWS = [
    {"account": "b", "available": 600},
    {"account": "a", "available": 9},
    {"account": "c", "available": 600},
]


@pytest.mark.parametrize(
    ("wanted", "order"),
    [
        ("PROJECT", "abc"),
        ("-PROJECT", "cba"),
        ("AVAILABLE", "abc"),
        ("-AVAILABLE", "bca"),
        ("-available,-project", "cba"),
    ],
)
def test_rows_in_the_order_asked_for(wanted: str, order: str) -> None:
    assert (
        "".join(row["account"] for row in sort_rows(COLUMNS, ROWS, wanted, Look(separators=True)))
        == order
    )


def test_an_unknown_column_to_sort_by_is_told() -> None:
    with pytest.raises(Malformed, match="no column 'nope'"):
        sort_rows(COLUMNS, ROWS, "nope", Look())
