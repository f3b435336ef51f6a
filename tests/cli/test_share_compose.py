"""Tests of `share compose`: shares and prices of the site in the documentation's example file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbank.core.tres import parse_weights
from tests.cli.conftest import CommandResult, Run, heads


@pytest.fixture
def page(checkout: Path) -> str:
    return (checkout / "docs" / "howto" / "compose-shares.md").read_text()


@pytest.fixture
def run(fairbank: Run, page: str, tmp_path: Path) -> Run:
    """Run a command on the documentation's example file, with one text replaced."""

    def call(*words: object, change: tuple[str, str] = ("", "")) -> CommandResult:
        file = tmp_path / "shares.toml"
        file.write_text(page.split("```toml\n")[1].split("```")[0].replace(*change))
        return fairbank("share", "compose", file, *words)

    return call


def documented_output(page: str, command: str) -> str:
    return page.split(f"$ fairbank share compose shares.toml{command}\n")[1].split("```")[0]


def test_documented_output_is_that_of_the_command(run: Run, page: str) -> None:
    result = run()
    assert result.out + result.err == documented_output(page, "")
    assert run("--weights").out == documented_output(page, " --weights")


def test_composition_has_the_common_output_formats(run: Run) -> None:
    data = json.loads(run("--json").out)
    assert (data["schema"], data["data"][2]) == (
        "fairbank.composition/1",
        {"account": "lab3", "gratis": 64 / 3, "lab": 0.0, "communal": 24.0, "shares": 45},
    )
    assert (
        run("--parsable", "--noheader", "-o", "ACCOUNT,SHARES").out
        == "lab1|93\nlab2|903\nlab3|45\n"
    )
    assert json.loads(run("--weights", "--json").out)["schema"] == "fairbank.weights/1"
    assert heads(run("--helpformat")) == ["ACCOUNT", "GRATIS", "LAB", "COMMUNAL", "SHARES"]
    assert heads(run("--weights", "--helpformat")) == ["PARTITION", "TRESBILLINGWEIGHTS"]


def test_price_with_endless_decimals_keeps_its_precision(run: Run) -> None:
    data = json.loads(
        run("--weights", "--json", change=("memory_mib = 131072", "memory_mib = 96000")).out
    )["data"][0]["weights"]
    assert float(parse_weights(data)["mem"]) == pytest.approx(32 / 96_000, rel=1e-8)


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        (('lab = "lab1"', 'lab = "lab9"'), 2, "labs"),
        (('accounts = ["lab1", "lab2", "lab3"]', "accounts = []"), 2, "accounts"),
        (("lab3 = 3 }", "lab3 = -3 }"), 2, "partitions[2].communal.lab3"),
        (("cores = 32", "cores = 1_000_000_000_000"), 2, "shares"),
        (("half_of", "third_of"), 2, "partitions[4].third_of"),
        (("reference =", "reference"), 2, "FILE"),
    ],
)
def test_invalid_value_is_reported_with_its_place(
    run: Run, change: tuple[str, str], code: int, field: str
) -> None:
    result = run(change=change)
    assert (result.code, result.out) == (code, "")
    assert f"field: {field}\n" in result.err
    assert "try: " in result.err


def test_missing_or_binary_file_is_reported(fairbank: Run, tmp_path: Path) -> None:
    result = fairbank("share", "compose", tmp_path / "nothing.toml")
    assert (result.code, result.out) == (3, "")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    result = fairbank("share", "compose", tmp_path / "bytes")
    assert (result.code, result.out) == (2, "")
    assert "save it as text in UTF-8" in result.err
