"""Test program of the site factor plug-in's C code without Slurm, and the value that it must
find.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fairbank.slurm.site_factor import SiteFactorTable

SANITIZERS = ("address,undefined", "thread")


def value_of(table: SiteFactorTable, account: str, partition: str, now: int) -> int:
    """Return the value for a job: 0 if it is not listed, and from a stale table."""
    if abs(now - table.written) > table.stale_seconds:
        return 0
    return table.values.get((account, table.resources.get(partition, "")), 0)


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
    options = [
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
    subprocess.run([compiler, *options, "-o", program, *sources, "-lpthread"], check=True)
    return program
