"""Page about the SLURM report of 2002: the files and tests that its rows name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
SOURCE = re.compile(r"`([a-z_/]+\.py)`")


@pytest.fixture
def rows(checkout: Path) -> list[str]:
    """Return the rows with a number."""
    page = (checkout / "docs/reference/slurm-2002.md").read_text()
    return re.findall(r"^\| (?:[1-7]\.\d\d|Table 1) \|.*$", page, re.MULTILINE)


def test_every_test_of_a_row_exists(checkout: Path, rows: list[str]) -> None:
    cited = {cite for row in rows for cite in TEST.findall(row)}
    assert len(cited) > 90
    missing = []
    for file, test in sorted(cited):
        path = checkout / file if file.startswith("tests/") else checkout / "tests/wlm" / file
        if not path.exists() or f"def {test}(" not in path.read_text():
            missing.append(f"{file}::{test}")
    assert missing == []


def test_every_file_of_a_row_exists(checkout: Path, rows: list[str]) -> None:
    cited = {file for row in rows for file in SOURCE.findall(row)}
    assert len(cited) > 40
    assert [file for file in sorted(cited) if not (checkout / "src/fairbank" / file).exists()] == []


def test_row_has_a_test(rows: list[str]) -> None:
    """A row about no code has neither: the license, and a machine of its own for the daemons."""
    without = [row[2:6] for row in rows if not TEST.search(row)]
    assert without == ["1.02", "6.09"]


def test_every_row_for_one_machine_is_there(shared: Path, rows: list[str]) -> None:
    """Parts A and B of the design are built; part C is several machines."""
    design = (shared / "design/wlm.md").read_text()
    planned = re.findall(r"^\| ([1-7]\.\d\d) \|.*\| (?:A|B)[^|]*\| [^|]* \|$", design, re.MULTILINE)
    assert len(planned) > 120
    assert sorted(set(planned) - {row[2:6] for row in rows}) == []
