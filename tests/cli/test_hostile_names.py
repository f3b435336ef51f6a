"""Hostile banks and names: none of their characters reaches a terminal or a spreadsheet except as
text.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from fairbank.rest.client import Address
from fairbank.rest.client.response import read_answer
from tests.cli.conftest import Run

HOSTILE = "\x1b[31mred\x07\u202e\x9b2J|,\r"
TARGETS = frozenset(
    "account gname resource category partition cluster comment outcome detail user label reason"
    " group remedies what".split()
)
COMMANDS = (
    *(
        "",
        "balance",
        "balance -l",
        "usage -S 2026-01-01",
        "statement 1 -S 2026-01-01",
        "jobs -a -l",
        "jobs --refused -a -l",
    ),
    *(
        "alloc list -l",
        "alloc show 1",
        "project list",
        "project show 1",
        "whoami",
        "deposit 1 1 --reason x",
        "alloc show 99",
    ),
    *(
        "deposit 1 1 --reason x --dry-run",
        "withdraw 2 10k --reason x",
        "refund 812301 --reason x --dry-run",
    ),
    "quote -A chem_qmc -M darwin -p idle-std -t 60",
)


def with_hostile_text(value: Any, key: str = "") -> Any:
    """Return the answer with hostile characters in every text that is meant for people."""
    if isinstance(value, dict):
        return {name: with_hostile_text(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [with_hostile_text(item, key) for item in value]
    return f"={value}{HOSTILE}" if isinstance(value, str) and key in TARGETS else value


@pytest.fixture
def hostile(changing: Run, clean_env: pytest.MonkeyPatch) -> Run:
    """Run the commands against a bank with hostile answers."""

    def read_hostile_answer(status: int, body: bytes, address: Address) -> dict[str, Any]:
        return read_answer(
            status, json.dumps(with_hostile_text(json.loads(body))).encode(), address
        )

    clean_env.setattr("fairbank.rest.client.client.read_answer", read_hostile_answer)
    return changing


@pytest.mark.parametrize("words", COMMANDS)
def test_only_printable_text_reaches_the_terminal(hostile: Run, words: str) -> None:
    for form in ([], ["--json"], ["--csv"], ["-P"]) if words else ([],):
        result = hostile(*words.split(), *form)
        output = result.out + result.err
        assert result.code in (0, 2, 3, 5), output
        assert "should not have happened" not in output
        assert all(character.isprintable() for character in output.replace("\n", ""))


@pytest.mark.parametrize(
    "words",
    [
        "balance",
        "jobs -a",
        "jobs --refused -a",
        "alloc list",
        "project list",
        "statement 1 -S 2026-01-01",
    ],
)
def test_no_cell_is_a_formula_or_two_cells(hostile: Run, words: str) -> None:
    rows = list(csv.reader(io.StringIO(hostile(*words.split(), "--csv").out)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "@")]
    lines = hostile(*words.split(), "-P").out.splitlines()
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "{}",
        "[]",
        "null",
        '{"data": 5}',
        '{"as_of": "x"}',
        '{"data": [{}]}',
        '{"data": {"x": 1}}',
        "<html>",
    ],
)
def test_malformed_response_gives_no_traceback(
    fairbank: Run, clean_env: pytest.MonkeyPatch, answer: str
) -> None:
    clean_env.setattr(
        "fairbank.rest.client.client.read_answer",
        lambda status, body, address: read_answer(200, answer.encode(), address),
    )
    for words in (
        [],
        ["balance"],
        ["jobs", "-a"],
        ["statement", "1"],
        ["whoami"],
        ["usage"],
        ["status"],
    ):
        result = fairbank(*words)
        assert result.code in (0, 1, 6)
        assert "Traceback" not in result.err
