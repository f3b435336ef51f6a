"""Resources of a whole process, from start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class ProcessCost(NamedTuple):
    """CPU seconds, user and system together, and peak memory in MiB."""

    seconds: float
    memory: float


_WATCHED = """
import resource, subprocess, sys
with open(sys.argv[1], "wb") as output:
    subprocess.run(sys.argv[2:], check=True, stdout=output, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def run_process(
    command: Sequence[str], *, folder: Path | None = None, output: Path = Path(os.devnull)
) -> ProcessCost:
    """Run a command that must succeed; its output goes to the file `output`.

    A small helper process starts it, because Linux counts the memory of the parent at fork as the
    child's. Modules are compiled beforehand, as in an installation, whatever
    PYTHONDONTWRITEBYTECODE is.
    """
    watching = [sys.executable, "-c", _WATCHED, str(output.absolute()), *command]
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.run(
        watching, check=True, capture_output=True, text=True, cwd=folder, env=known
    ).stdout
    return ProcessCost(*map(float, process.split()))
