"""Readers of values from the output of commands."""

from __future__ import annotations

import json

from tests.cli.conftest import CommandResult, Run


def available(changing: Run, allocation: int) -> int:
    data: int = json.loads(changing("alloc", "show", allocation, "--json").out)["data"][0][
        "available"
    ]
    return data


def output_of(result: CommandResult, code: int = 0) -> str:
    assert result.code == code, result
    return result.out if code == 0 else result.err


def entry_number(result: CommandResult) -> int:
    return int(output_of(result).split(":")[0].removeprefix("entry "))


def job_numbers(result: CommandResult) -> list[int]:
    return [row["job_id"] for row in json.loads(result.out)["data"]]


def fold(text: str) -> str:
    """Return the text on one line, with single spaces."""
    return " ".join(text.split())
