"""The counter's process is started."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from fairbank.service.counting.wire import READ_MAX, Frames, Opening, error_of, failure_in, framed
from fairbank.values.trouble import Unreachable

START_SECONDS = 60.0  # it imports, and opens the store, which waits for the database


def started(command: Sequence[str], opening: Opening) -> tuple[socket.socket, Callable[[], int]]:
    """Run `command`, with the line as its standard input, and wait until it has opened the bank. Returns the line, and what
    waits for the end of the process and tells its status.

    Raises what it could not open the bank for; Unreachable when it ended without a word, or says nothing for START_SECONDS.
    """
    line, theirs = socket.socketpair()
    try:
        with theirs:
            popen = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    except BaseException:
        line.close()
        raise
    try:
        _greet(line, opening)
    except BaseException:
        line.close()
        popen.kill()
        popen.wait()
        raise
    return line, popen.wait


def _greet(line: socket.socket, opening: Opening) -> None:
    line.settimeout(START_SECONDS)
    frames = Frames()
    with suppress(OSError):
        line.sendall(framed(opening))
        while data := line.recv(READ_MAX):
            for body in frames.arrived(data):
                failure = failure_in(body)
                if failure is not None:
                    raise error_of(failure)
                return
    raise Unreachable(
        "the counter's process did not start",
        remedy='see what it said above; or set counter = "threads" in [server]',
    )
