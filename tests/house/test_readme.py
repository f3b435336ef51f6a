"""The session in README.md is typed again, and prints what stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROMPT = "$ "
WHEN = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d [+-]\d\d:\d\d)?")
SPENT = re.compile(r"\d+ ms")


def session(page: str) -> list[tuple[str, str]]:
    """The commands of the first console block, each with what it prints."""
    block = re.search(r"```console\n(.*?)```", page, re.DOTALL)
    assert block is not None
    typed: list[tuple[str, str]] = []
    for line in block[1].splitlines(keepends=True):
        if line.startswith(PROMPT):
            typed.append((line.removeprefix(PROMPT), ""))
        elif typed[-1][0].count("'") % 2:
            typed[-1] = (typed[-1][0] + line, "")
        else:
            typed[-1] = (typed[-1][0], typed[-1][1] + line)
    return typed


@pytest.mark.slow
def test_the_session_prints_what_the_readme_says(checkout: Path, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the session types curl, which this machine has not")
    typed = session((checkout / "README.md").read_text())
    assert len(typed) > 5
    script = "".join(f"{command}printf '\\36'\n" for command, _ in typed)
    folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", f"trap 'kill $!' EXIT\n{script}"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "TZ": "UTC", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    printed = done.stdout.split("\36")[:-1]
    expected = [said.replace("$PWD", str(tmp_path)) for _, said in typed]
    assert [_timeless(said) for said in printed] == [_timeless(said) for said in expected], done.stderr


def _timeless(said: str) -> str:
    return SPENT.sub("SPENT", WHEN.sub("WHEN", said))
