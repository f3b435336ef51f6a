"""Files that a submission reads: the batch script and lists of hosts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from fairbank.core.errors import InvalidInput
from fairbank.core.hostlist import HOSTS_MAX, expand
from fairbank.core.submission.script import check_script
from fairbank.wlm.protocol.frames import BODY_MAX

_HOSTS_FILE_MAX = 1024 * 1024
_HOSTS = re.compile(r"([A-Za-z0-9][^*]*)(?:\*([1-9]\d{0,4}))?", re.ASCII)
_BETWEEN_HOSTS = re.compile(r"[,\s]+(?![^\[]*\])")  # outside brackets
_COMMENT = re.compile(r"(?<!\\)#.*")
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


def hosts_in_file(path: str, tasks: int | None = None) -> str:
    """Return the hosts of a file, separated by commas; `n1*3` stands for n1 three times.

    Args:
        path: the file.
        tasks: number of tasks of which it names the nodes; those of more are left out.

    Raises:
        InvalidInput: it cannot be read, or names too few hosts.
    """
    hosts = list(islice(_hosts(path), HOSTS_MAX if tasks is None else tasks))
    if not hosts:
        raise InvalidInput(f"Hostlist is empty! {path} names no node", field="nodefile")
    if tasks is not None and len(hosts) < tasks:
        raise InvalidInput(
            f"Too few NodeNames in Slurm Hostfile: {path} names {len(hosts)} for {tasks} tasks",
            field="nodefile",
            remedy="name the node of each task, or ask for fewer tasks",
        )
    return ",".join(hosts)


def _hosts(path: str) -> Iterator[str]:
    lines = _read(path, _HOSTS_FILE_MAX).decode(errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        for word in filter(None, _BETWEEN_HOSTS.split(_COMMENT.sub("", line))):
            match = _HOSTS.fullmatch(word)
            if match is None:
                raise InvalidInput(
                    f"Invalid hostfile {path} contents on line {number}: {word[:40]!a}",
                    field="nodefile",
                    remedy="write names of nodes, such as n1, n[2-4] or n1*3",
                )
            for _ in range(int(match[2] or 1)):
                yield from expand(match[1], field="nodefile")


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
