"""Sessions of documentation pages: parsing, and typing them into a shell on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

PROMPT = "$ "
LONGEST_SECONDS = 300
"""Time limit for a whole page, generous for a machine that is busy with other tests."""

_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"file, `([\w.-]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
_SCRIPT = re.compile(r"```sh\n(.*?)```(?:[^`]*```text\n(.*?)```)?", re.DOTALL)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ|(?: \d\d:\d\d:\d\d(?: [+-]\d\d:\d\d)?)?)|\d\d-\d\d"
    r" \d\d:\d\d"
)
_DURATION = re.compile(r"[\d,]+ operations/s|\d+(?:\.\d+)? (?:ms|s|days?)\b")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BACKGROUND = re.compile(r"\[\d+\] \d+|The bank listens at.*|    unix:\S+|.* \[[#-]{9,}\] .*")
"""Lines of a server in the background, of bash about it, and of progress bars."""

# bash prints PS0 before it runs a command, and PS1 with the exit status after it.
_SETTINGS = """
PS0=$'\\x01' PS1=$'\\x02$?\\x03' PS2=
bind 'set enable-bracketed-paste off'
unset HISTFILE PROMPT_COMMAND
"""
_RUN = re.compile(r"\x01(.*?)\x02(\d+)\x03", re.DOTALL)


class Command(NamedTuple):
    """Command of a session with the output that the page shows."""

    words: str
    output: str


class Result(NamedTuple):
    """Exit status and output of a command."""

    status: int
    output: str


def blocks(page: str) -> list[list[Command]]:
    """Return the sessions of a page: its blocks marked `console`."""
    return [_commands(match[1]) for match in _BLOCK.finditer(page)]


def write_files(page: str, folder: Path) -> None:
    """Write the files that the page shows: "A file, `shares.toml`:" and a block."""
    for name, text in _FILE.findall(page):
        (folder / name).write_text(text)


def scripts(page: str) -> list[Command]:
    """Return the blocks of a page marked `sh`, each with the `text` block behind it."""
    return [Command(words, output) for words, output in _SCRIPT.findall(page)]


def _commands(block: str) -> list[Command]:
    commands: list[Command] = []
    for line in block.splitlines(keepends=True):
        if line.startswith(PROMPT):
            commands.append(Command(line.removeprefix(PROMPT), ""))
        elif commands[-1].words.endswith("\\\n"):  # as the pages' copy button sees it
            commands[-1] = Command(commands[-1].words + line, "")
        else:
            commands[-1] = commands[-1]._replace(output=commands[-1].output + line)
    return commands


def paste(commands: list[Command], folder: Path) -> list[Result]:
    """Write all commands at once to a terminal on which bash runs in `folder`."""
    settings = folder / ".settings"
    settings.write_text(_SETTINGS)
    screen, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    mode = termios.tcgetattr(theirs)
    mode[3] &= ~termios.ECHO  # of the input only; the output is the same
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    shell = subprocess.Popen(
        [_found("setsid"), "--ctty", "--wait", "bash", "--rcfile", str(settings), "-i"],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name not in _UNSET},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "TZ": "UTC",
            "TERM": "xterm",
            "NO_COLOR": "1",
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    end = Command("kill $(jobs -p) 2> /dev/null; exit\n", "")
    text = "".join(command.words for command in [*commands, end])
    try:
        output = _converse(screen, text.encode())
        shell.wait(30)
    finally:
        shell.kill()
        os.close(screen)
    return [Result(int(status), shown(written)) for written, status in _RUN.findall(output)]


_UNSET = {"COLUMNS", "LINES", "PAGER", "LESS", "FAIRBANK_SERVER", "FAIRBANK_CONFIG"}


def _found(program: str) -> str:
    path = shutil.which(program)
    assert path is not None, f"this machine has no {program}"
    return path


def _converse(screen: int, left: bytes) -> str:
    """Write as fast as the terminal takes it, and read until the shell ends."""
    os.set_blocking(screen, False)
    deadline = time.monotonic() + LONGEST_SECONDS
    read = b""
    while (seconds := deadline - time.monotonic()) > 0:
        readable, writable, _ = select.select([screen], [screen] if left else [], [], seconds)
        if writable:
            left = left[os.write(screen, left) :]
        if readable:
            try:
                part = os.read(screen, 65_536)
            except OSError:  # the shell has closed its end
                part = b""
            if not part:
                return read.decode()
            read += part
    raise AssertionError(f"the session did not end: {read[-2000:].decode(errors='replace')}")


def shown(output: str) -> str:
    """Return the lines that remain on the screen, without those of background jobs."""
    lines = [
        _ESCAPE.sub("", line).rstrip("\r").rpartition("\r")[2].rstrip()
        for line in output.split("\n")
    ]
    return "\n".join(line for line in lines if not _BACKGROUND.fullmatch(line)).strip("\n")


def without_times(output: str) -> str:
    """Return the output without what differs from day to day."""
    return _DURATION.sub("DURATION", _TIME.sub("TIME", output)).strip("\n")
