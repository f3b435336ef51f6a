"""TaskProlog and TaskEpilog: programs that run before and after each task, as its user."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

_NOT_EXECUTED = 1
"""Exit code of a program that could not be executed, as in Slurm."""
_OUTPUT_MAX = 1024 * 1024


def run_prologs(programs: Sequence[str], environment: dict[bytes, bytes]) -> int:
    """Run programs before a task, and change its environment as they say. Return the exit code of
    the first that fails, else 0.

    They write lines: `export NAME=VALUE` and `unset NAME` for the environment, `print TEXT` for the
    output of the task. Other lines mean nothing.
    """
    for program in programs:
        code, output = _run(program, environment)
        if code:
            _say(f"task prolog {program} failed status={code}")
            return code
        for line in output.split(b"\n"):
            word, _, rest = line.strip().partition(b" ")
            name, has_value, value = rest.strip().partition(b"=")
            if word == b"export" and has_value and name:
                environment[name] = value
            elif word == b"unset":
                environment.pop(name, None)
            elif word == b"print":
                os.write(1, rest + b"\n")
    return 0


def run_epilogs(
    programs: Sequence[str], environment: Mapping[bytes, bytes], directory: str
) -> NoReturn:
    """Run programs after a task in this process, which was forked for them. Its exit code is that
    of the last one that failed.
    """
    worst = _NOT_EXECUTED
    try:
        with suppress(OSError):  # it may be gone
            os.chdir(directory)
        worst = 0
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        for program in programs:
            worst = _run(program, environment)[0] or worst
    finally:
        os._exit(worst)


def _run(program: str, environment: Mapping[bytes, bytes]) -> tuple[int, bytes]:
    """Run a program, and return its exit code, 128 + s for a signal, and what it wrote."""
    output, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(end, 1)
            os.execve(program, [program], environment)  # noqa: S606
        except OSError as error:
            _say(f"task program {program} cannot be executed: {error.strerror}")
        finally:
            os._exit(_NOT_EXECUTED)
    os.close(end)
    text = b""
    while len(text) < _OUTPUT_MAX and (data := os.read(output, 65_536)):
        text += data
    os.close(output)
    return exit_code(os.waitpid(pid, 0)[1]), text


def exit_code(status: int) -> int:
    """Return the exit code of a wait status, 128 + s for a signal."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _say(text: str) -> None:
    os.write(2, f"slurmstepd: error: {text}\n".encode(errors="surrogateescape"))
