"""Tests of `share compose`: shares and prices of the site in the documentation's example file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbank.core.tres import parse_weights
from tests.cli.conftest import Run, Said


@pytest.fixture
def page(checkout: Path) -> str:
    return (checkout / "docs" / "howto" / "compose-shares.md").read_text()


@pytest.fixture
def ask(fairbank: Run, page: str, tmp_path: Path) -> Run:
    """Run a command on the documentation's example file, with one text replaced."""

    def call(*words: object, change: tuple[str, str] = ("", "")) -> Said:
        file = tmp_path / "shares.toml"
        file.write_text(page.split("```toml\n")[1].split("```")[0].replace(*change))
        return fairbank("share", "compose", file, *words)

    return call


def shown(page: str, command: str) -> str:
    return page.split(f"$ fairbank share compose shares.toml{command}\n")[1].split("```")[0]


def test_the_page_shows_what_it_says(ask: Run, page: str) -> None:
    result = ask()
    assert result.out + result.err == shown(page, "")
    assert ask("--weights").out == shown(page, " --weights")


def test_for_programs(ask: Run) -> None:
    data = json.loads(ask("--json").out)
    assert (data["schema"], data["data"][2]) == (
        "fairbank.composition/1",
        {"account": "lab3", "gratis": 64 / 3, "lab": 0.0, "communal": 24.0, "shares": 45},
    )
    assert (
        ask("--parsable", "--noheader", "-o", "ACCOUNT,SHARES").out == "lab1|93\nlab2|21\nlab3|45\n"
    )
    assert json.loads(ask("--weights", "--json").out)["schema"] == "fairbank.weights/1"
    assert ask("--helpformat").out == "ACCOUNT GRATIS LAB COMMUNAL SHARES\n"
    assert ask("--weights", "--helpformat").out == "PARTITION TRESBILLINGWEIGHTS\n"


def test_a_price_that_no_decimals_end_is_read_again_as_what_it_is(ask: Run) -> None:
    data = json.loads(
        ask("--weights", "--json", change=("memory_mib = 131072", "memory_mib = 96000")).out
    )["data"][0]["weights"]
    assert float(parse_weights(data)["mem"]) == pytest.approx(32 / 96_000, rel=1e-8)


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (('lab = "lab1"', 'lab = "lab9"'), 2, "labs"),
        (('accounts = ["lab1", "lab2", "lab3"]', "accounts = []"), 2, "accounts"),
        (("lab3 = 3 }", "lab3 = -3 }"), 2, "partitions[2].communal.lab3"),
        (("cores = 32", "cores = 1_000_000_000_000"), 2, "shares"),
        (("half_of", "third_of"), 2, "partitions[3].third_of"),
        (("reference =", "reference"), 2, "FILE"),
    ],
)
def test_impossible_value_is_reported_with_its_place(
    ask: Run, change: tuple[str, str], code: int, field: str
) -> None:
    result = ask(change=change)
    assert (result.code, result.out) == (code, "")
    assert f"field: {field}\n" in result.err
    assert "try: " in result.err


def test_a_file_that_is_not_there_or_no_text(fairbank: Run, tmp_path: Path) -> None:
    result = fairbank("share", "compose", tmp_path / "nothing.toml")
    assert (result.code, result.out) == (3, "")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    result = fairbank("share", "compose", tmp_path / "bytes")
    assert (result.code, result.out) == (2, "")
    assert "write it as UTF-8" in result.err
