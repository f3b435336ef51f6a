"""Files that a submission reads: the batch script and lists of hosts."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from fairbank.core.errors import InvalidInput
from fairbank.core.submission.script import check_script
from fairbank.wlm.protocol.frames import BODY_MAX

_HOSTS_MAX = 1024 * 1024
_WRAPPED = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
PROGRAM_SCRIPT = b'#!/bin/sh\nexec srun "$@"\n'
"""Script that runs the program which is its first argument on all nodes of its job."""


def batch_script(name: str | None, command: str | None) -> bytes:
    """Return the script of a batch job.

    Args:
        name: path of the script; None: standard input.
        command: command of --wrap, in place of a script.

    Raises:
        InvalidInput: there is no such file, or it is no script.
    """
    if command is not None:
        return _checked(os.fsencode(_WRAPPED.format(command)))
    if name is None:
        return _checked(sys.stdin.buffer.read(BODY_MAX))
    return _checked(_read(script_path(name), BODY_MAX))


def script_or_program(name: str) -> bytes | None:
    """Return a script for `srun --batch`; None for a program, which is none."""
    path = script_path(name)
    script = _read(path, BODY_MAX)
    return _checked(script) if script.startswith(b"#!") else None


def hosts_in_file(path: str) -> str:
    """Return the hosts of a file, separated by commas."""
    return ",".join(_read(path, _HOSTS_MAX).decode(errors="replace").replace(",", " ").split())


def script_path(name: str) -> str:
    """Return the path of a script: in the working directory, else on PATH."""
    if "/" not in name and not os.path.exists(name):
        for directory in os.environ.get("PATH", "").split(":"):
            path = os.path.join(directory, name)
            if os.access(path, os.R_OK) and os.path.isfile(path):
                return path
    return name


def _read(path: str, limit: int) -> bytes:
    try:
        file: BinaryIO
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise InvalidInput(
            f"Unable to open file {path}: {error.strerror}", field="script"
        ) from None


def _checked(script: bytes) -> bytes:
    """Return the script. Raises InvalidInput if it is none. The controller checks its size."""
    check_script(script)
    return script
