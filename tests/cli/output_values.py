"""Readers of values from the output of commands."""

from __future__ import annotations

import json

from tests.cli.conftest import Run, Said


def available(changing: Run, allocation: int) -> int:
    data: int = json.loads(changing("alloc", "show", allocation, "--json").out)["data"][0][
        "available"
    ]
    return data


def told(said: Said, code: int = 0) -> str:
    assert said.code == code, said
    return said.out if code == 0 else said.err


def entry_of(said: Said) -> int:
    return int(told(said).split(":")[0].removeprefix("entry "))


def numbers(said: Said) -> list[int]:
    return [row["job_id"] for row in json.loads(said.out)["data"]]
