"""Background of an interactive srun: `~&` at the start of a line leaves the terminal."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from itertools import count

from fairbank.core.errors import FairbankError
from fairbank.wlm.client.requests import StartedStep

_ESCAPE, _LEAVE = b"~&"


class InBackground(Exception):
    """End of this process, while another one follows the step. `lines` tell the user where."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(*lines)
        self.lines = lines


class Escapes:
    """Search for `~&` at the start of a line of input. `~~` there stands for one `~`, as in ssh."""

    def __init__(self) -> None:
        self._is_line_start, self._has_escape = True, False

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Return the input that is for the tasks, and whether `~&` comes after it."""
        passed = bytearray()
        for byte in data:
            if self._has_escape:
                self._has_escape = False
                if byte == _LEAVE:
                    return bytes(passed), True
                if byte != _ESCAPE:
                    passed.append(_ESCAPE)
            elif byte == _ESCAPE and self._is_line_start:
                self._has_escape, self._is_line_start = True, False
                continue
            passed.append(byte)
            self._is_line_start = byte in b"\r\n"
        return bytes(passed), False


def leave_terminal(step: StartedStep, options: str, own: Callable[[], None]) -> None:
    """Go on in a process without a terminal, which writes to new files instead.

    Args:
        step: the step that the process follows.
        options: options of srun that attach needs again.
        own: tells the controller that another process follows the step now.

    Raises:
        InBackground: in the process that has the terminal.
        OSError: there is no such process.
    """
    name = f"{step.job}.{step.step}"
    files = {
        number: _create(f"slurm-{name}", suffix)
        for number, suffix in ((1, ".out"), (2, ".err"))
        if os.isatty(number)
    }
    is_owner, owner = os.pipe()
    if child := os.fork():
        os.close(owner)
        with open(is_owner, "rb") as pipe:
            has_failed = not pipe.read(1)
        if has_failed:
            os.waitpid(child, 0)
            for path, file in files.values():
                os.close(file)
                os.unlink(path)
            raise OSError(errno.EAGAIN, "the controller does not answer")
        where = ", ".join(path for path, _ in files.values())
        goes = f"; its output goes to {where}" if where else ""
        again = f"attach again with: srun --attach {name}{options}"
        raise InBackground((f"{step} goes on in the background{goes}", again))
    try:
        own()
        os.write(owner, b"\n")
    except (FairbankError, OSError, KeyboardInterrupt):
        os._exit(1)
    os.close(owner)
    os.close(is_owner)
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for number, (_, file) in files.items():
        os.dup2(file, number)


def _create(stem: str, suffix: str) -> tuple[str, int]:
    """Create a file in the working directory. Return its name and descriptor. Raises OSError."""
    for number in count(1):
        path = f"{stem}-{number}{suffix}" if number > 1 else f"{stem}{suffix}"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
    raise AssertionError
