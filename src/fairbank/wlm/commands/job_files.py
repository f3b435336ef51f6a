"""Files that a submission reads: the batch script and lists of hosts."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from fairbank.core.errors import InvalidInput

SCRIPT_MAX = 4 * 1024 * 1024
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
        return _checked(sys.stdin.buffer.read(SCRIPT_MAX + 1))
    return _checked(_read(script_path(name), SCRIPT_MAX + 1))


def script_or_program(name: str) -> bytes | None:
    """Return a script for `srun --batch`; None for a program, which is none."""
    path = script_path(name)
    script = _read(path, SCRIPT_MAX + 1)
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
    """Return the script. Raises InvalidInput, with the sentences of sbatch, if it is none."""
    if len(script) > SCRIPT_MAX:
        raise InvalidInput(
            "Batch job submission failed: Pathname of a file, directory or other parameter"
            " too long",
            field="script",
            remedy=f"a script has at most {SCRIPT_MAX} bytes",
        )
    refusal = ""
    if not script:
        refusal = "Batch script is empty!"
    elif not script.strip():
        refusal = "Batch script contains only whitespace!"
    elif not script.startswith(b"#!"):
        refusal = (
            "This does not look like a batch script.  The first\n"
            "line must start with #! followed by the path to an interpreter.\n"
            "For instance: #!/bin/sh"
        )
    elif b"\0" in script:
        refusal = (
            "The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'."
        )
    elif b"\r\n" in script:
        refusal = (
            "Batch script contains DOS line breaks (\\r\\n)\n"
            "instead of expected UNIX line breaks (\\n)."
        )
    if refusal:
        raise InvalidInput(refusal, field="script")
    return script
