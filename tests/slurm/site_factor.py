"""Test program of the site factor plug-in: its C code without Slurm."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SANITIZERS = ("address,undefined", "thread")


def compiled(checkout: Path, folder: Path, sanitizer: str) -> Path:
    """Return the test program of the site factor plug-in, built with a sanitizer."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = folder / "check_site_factor"
    sources = [
        checkout / "plugins" / "site_factor" / f"{name}.c"
        for name in ("check", "table_reload", "table")
    ]
    words = [
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        f"-fsanitize={sanitizer}",
        "-fno-sanitize-recover=all",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([compiler, *words, "-o", program, *sources, "-lpthread"], check=True)
    return program
