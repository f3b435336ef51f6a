"""Tests of `make test`: both halves run, even if all selected tests are in one of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# Plug-ins that take seconds to start and that these tests do not use.
LIGHT = "-p no:schemathesis -p no:pytest_cov -p no:faker"
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
@pytest.mark.parametrize(
    ("chosen", "passes"), [("-k test_slow", True), ("-k 'test_wrong or test_quick'", False)]
)
def test_only_the_selected_tests_decide(
    checkout: Path, tmp_path: Path, chosen: str, passes: bool
) -> None:
    tests = tmp_path / "test_halves.py"
    tests.write_text(TWO_HALVES)
    process = make(checkout, f"TESTS={tests}", f"ARGS={chosen} {LIGHT}")
    assert (process.returncode == 0) == passes, process.stdout
    assert "the slow half" in process.stdout


@pytest.mark.timeout(300)
def test_selection_without_any_test_fails_with_a_message(checkout: Path, tmp_path: Path) -> None:
    """A misspelt selection matches nothing. The next call works."""
    tests = tmp_path / "test_halves.py"
    tests.write_text(TWO_HALVES)
    process = make(checkout, f"TESTS={tests}", f"ARGS=-k test_slwo {LIGHT}")
    assert (process.returncode, "ARGS and TESTS select no test" in process.stdout) == (2, True), (
        process.stdout
    )
    assert make(checkout, f"TESTS={tests}", f"ARGS=-k test_quick {LIGHT}").returncode == 0


def test_half_without_tests_fails_if_nothing_is_selected(checkout: Path) -> None:
    commands = make(checkout, "--dry-run").stdout
    assert commands.count("/pytest ") == 2
    assert "= 5" not in commands


@pytest.mark.parametrize(
    ("variables", "in_parallel"),
    [((), True), (("TESTS=tests/bank",), False), (("ARGS=-x",), False)],
    ids=str,
)
def test_all_tests_run_in_parallel_and_selected_tests_in_one_process(
    checkout: Path, variables: tuple[str, ...], in_parallel: bool
) -> None:
    commands = make(checkout, "--dry-run", *variables).stdout
    assert commands.count("--numprocesses ") == (2 if in_parallel else 0)
    assert commands.count("-p no:xdist") == (0 if in_parallel else 2)


def test_test_slurm_of_another_release_runs_isolated_or_is_skipped(checkout: Path) -> None:
    here, within = (
        make(checkout, "--dry-run", *variables, verb="test-slurm").stdout
        for variables in ((), ("RELEASE=trixie",))
    )
    assert "lab within trixie" in within
    assert (
        "|| { [ $? = 69 ] && echo 'Skipped: all tests with the Slurm of Debian trixie.'; }"
        in within
    )
    assert "within" not in here
    assert "69" not in here


def test_slurm_from_source_that_cannot_be_built_fails(checkout: Path) -> None:
    """A named source tree must be tested: nothing is skipped and no error is ignored."""
    commands = make(checkout, "--dry-run", "SOURCE=/src", verb="test-slurm").stdout
    assert "lab install --source '/src' bookworm" in commands
    assert "lab within --source '/src' bookworm " in commands
    assert "69" not in commands
    other = make(checkout, "--dry-run", "SOURCE=/src", "RELEASE=trixie", verb="test-slurm").stdout
    assert "lab within --source '/src' trixie " in other


def test_unavailable_test_slurm_is_skipped_and_failing_tests_are_not(
    checkout: Path, tmp_path: Path
) -> None:
    """Only root can start a test Slurm: here a fake python exits as the test Slurm and pytest
    do.
    """
    for code, passes in ((69, True), (1, False)):
        programs = tmp_path / str(code) / "bin"
        programs.mkdir(parents=True)
        (programs / "python").write_text(f"#!/bin/sh\nexit {code}\n")
        (programs / "python").chmod(0o755)
        process = make(checkout, "RELEASE=trixie", verb="test-slurm", venv=programs.parent)
        skipped = (
            "Skipped: all tests with the Slurm of Debian trixie." in process.stdout.splitlines()
        )
        assert (process.returncode == 0, skipped) == (passes, passes), process.stdout


def make(
    checkout: Path, *variables: str, verb: str = "test", venv: Path = Path(sys.prefix)
) -> subprocess.CompletedProcess[str]:
    """Run a make target in this environment, without setting it up."""
    environment = {
        name: value
        for name, value in os.environ.items()
        # Also not the variables of the make that runs the tests.
        if not name.startswith(("MAKE", "MFLAGS", "PYTEST", "TESTS", "ARGS", "SHORT", "RELEASE"))
    }
    command = ["make", "-o", f"{venv}/.dev", verb, f"VENV={venv}", *variables]
    return subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
