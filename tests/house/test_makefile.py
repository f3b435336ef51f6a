"""`make test` goes through both halves, also where what was chosen is all in one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TWO_HALVES = """
import pytest

def test_quick(): ...

@pytest.mark.slow
def test_slow(): ...

@pytest.mark.slow
def test_wrong():
    assert False
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("chosen", "passes"), [("-k test_slow", True), ("-k 'test_wrong or test_quick'", False)])
def test_what_was_chosen_is_run_and_decides(checkout: Path, tmp_path: Path, chosen: str, passes: bool) -> None:
    tests = tmp_path / "test_halves.py"
    tests.write_text(TWO_HALVES)
    made = make(checkout, f"TESTS={tests}", f"ARGS={chosen}")
    assert (made.returncode == 0) == passes, made.stdout
    assert "the slow half" in made.stdout


@pytest.mark.timeout(300)
def test_a_choice_of_no_test_at_all_fails_with_words(checkout: Path, tmp_path: Path) -> None:
    """As after a word misspelt; and the next call is none the worse for it."""
    tests = tmp_path / "test_halves.py"
    tests.write_text(TWO_HALVES)
    made = make(checkout, f"TESTS={tests}", "ARGS=-k test_slwo")
    assert (made.returncode, "No test is chosen by ARGS and TESTS" in made.stdout) == (2, True), made.stdout
    assert make(checkout, f"TESTS={tests}", "ARGS=-k test_quick").returncode == 0


def test_a_half_that_finds_no_test_has_failed_where_nothing_narrowed_the_choice(checkout: Path) -> None:
    told = make(checkout, "--dry-run").stdout
    assert told.count("/pytest ") == 2
    assert "= 5" not in told


def make(checkout: Path, *given: str) -> subprocess.CompletedProcess[str]:
    """`make test` with this environment as it is: nothing is set up."""
    around = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST"))}
    command = ["make", "-o", f"{sys.prefix}/.dev", "test", f"VENV={sys.prefix}", *given]
    return subprocess.run(command, cwd=checkout, env=around, capture_output=True, text=True, check=False)
