"""Sessions as a page prints them: what is typed after each prompt, and what comes of it; typed again in a fresh folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PROMPT = "$ "
LONGEST_SECONDS = 300
"""How long a whole session may take where much else runs beside it."""

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_WHEN = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ|(?: \d\d:\d\d:\d\d(?: [+-]\d\d:\d\d)?)?)|\d\d-\d\d \d\d:\d\d"
)
_SPENT = re.compile(r"\d+ ms")

Typed = list[tuple[str, str]]
"""Commands, each with what it prints."""


def blocks(page: str) -> list[Typed]:
    """The console blocks of a page."""
    return [_session(match[1]) for match in _BLOCK.finditer(page)]


def _session(block: str) -> Typed:
    typed: Typed = []
    for line in block.splitlines(keepends=True):
        if line.startswith(PROMPT):
            typed.append((line.removeprefix(PROMPT), ""))
        elif typed[-1][0].count("'") % 2:
            typed[-1] = (typed[-1][0] + line, "")
        else:
            typed[-1] = (typed[-1][0], typed[-1][1] + line)
    return typed


def printed(typed: Typed, folder: Path) -> tuple[list[str], list[str], str]:
    """What the commands print in `folder` now, what the page says that they do, without times, and their errors."""
    script = "".join(f"{command}printf '\\36'\n" for command, _ in typed)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"trap 'kill $!' EXIT\n{script}"],
        cwd=folder,
        env={**os.environ, "PATH": path, "TZ": "UTC", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    now = [_timeless(said) for said in done.stdout.split("\36")[:-1]]
    return now, [_timeless(said.replace("$PWD", str(folder))) for _, said in typed], done.stderr


def _timeless(said: str) -> str:
    """Without what differs from day to day, and without the last line's end: curl prints none."""
    return _SPENT.sub("SPENT", _WHEN.sub("WHEN", said)).rstrip("\n")
