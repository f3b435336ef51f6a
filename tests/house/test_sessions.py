"""The sessions in README.md, in the tutorial and about workloads are typed again, and print what stands there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.sessions import blocks, printed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("curl") is None, reason="the sessions type curl, which this machine has not"
    ),
]


@pytest.mark.parametrize(
    ("page", "place", "commands"),
    [("README.md", 2, 8), ("docs/howto/simulate.md", 1, 2)],
    ids=["a bank", "on paper"],
)
def test_a_session_prints_what_stands_there(
    checkout: Path, tmp_path: Path, page: str, place: int, commands: int
) -> None:
    typed = blocks((checkout / page).read_text())[place]
    assert len(typed) >= commands
    now, expected, errors = printed(typed, tmp_path)
    assert now == expected, errors


def test_the_tutorial_leads_from_nothing_to_a_charged_job(checkout: Path, tmp_path: Path) -> None:
    demo, *rest = blocks((checkout / "docs" / "tutorial.md").read_text())
    assert [command for command, _ in demo] == ["make demo\n"], "its own tests are in tests/cli"
    typed = [each for block in rest for each in block]
    assert len(typed) > 12
    now, expected, errors = printed(typed, tmp_path)
    assert now == expected, errors
