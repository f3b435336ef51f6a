"""The C of the plug-in without Slurm, as a small program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

GUARDS = ("address,undefined", "thread")


def compiled(checkout: Path, folder: Path, guard: str) -> Path:
    """The program, with the compiler's guards against wrong memory or threads."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here: apt-get install gcc")
    program = folder / "check_site_factor"
    sources = [
        checkout / "plugins" / "site_factor" / f"{name}.c" for name in ("check", "keeper", "table")
    ]
    words = [
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-g",
        "-O1",
        f"-fsanitize={guard}",
        "-fno-sanitize-recover=all",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    subprocess.run([compiler, *words, "-o", program, *sources, "-lpthread"], check=True)
    return program
