"""What a whole process takes, from its start to its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Taken(NamedTuple):
    """Seconds of processors, user and system together, and MiB at the most."""

    seconds: float
    memory: float


_WATCHED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def taken(command: Sequence[str], *, folder: Path | None = None) -> Taken:
    """Run a command that must succeed, from a small process: Linux counts the memory of whoever starts a command as the command's."""
    watching = [sys.executable, "-c", _WATCHED, *command]
    said = subprocess.run(watching, check=True, capture_output=True, text=True, cwd=folder).stdout
    return Taken(*map(float, said.split()))
