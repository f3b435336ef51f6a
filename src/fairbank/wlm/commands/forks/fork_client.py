"""Client of the fork server, which has the modules of the commands already.

To load them takes most of the time of a short command. `socket` and `signal` would take as long as
Python itself, so their parts in C are used.
"""

import posix
import sys
from _signal import (  # type: ignore[import-not-found]  # mypy does not know it
    SIG_DFL,
    SIG_IGN,
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGQUIT,
    SIGSTOP,
    SIGTERM,
    SIGTSTP,
    SIGUSR1,
    SIGUSR2,
    SIGWINCH,
    default_int_handler,
    getsignal,
    signal,
)
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

_ACCEPT_SECONDS = 2.0
"""Longest wait for each answer of the server, before this process runs the command."""
_WAIT_SECONDS = 1.0
"""Longest wait for the end: Python handles a signal that comes just before a wait only after it."""
_ENDING = (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2)
_INTERACTIVE = ("salloc", "sattach", "fairbank-slurm")
"""Commands that need a terminal of their own, and the program that can be any of them."""


def run_in_fork(path: str) -> None:
    """Run this command in a fork of the server, and exit as it does.

    Return if it is not accepted, and nothing has been done: this process must run it then.

    Args:
        path: the socket of the server.
    """
    if _needs_terminal(sys.argv[0].rpartition("/")[2]):
        return
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)  # an end without a traceback
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        pid = _start_fork(connection, path)
    except (OSError, ValueError):
        connection.close()
        if getsignal(SIGINT) == SIG_DFL:
            signal(SIGINT, default_int_handler)
        return
    _follow(connection, pid)


def _needs_terminal(name: str) -> bool:
    """Return True if job control must apply: a shell controls only processes that it started."""
    if name in _INTERACTIVE or (name == "srun" and any(map(posix.isatty, range(3)))):
        return True
    try:
        return posix.isatty(0) and posix.tcgetpgrp(0) != posix.getpgrp()  # in the background
    except OSError:
        return True  # the terminal of another session


def _start_fork(connection: socket, path: str) -> int:
    """Start the fork, and return its pid. Raises OSError or ValueError without an effect."""
    connection.settimeout(_ACCEPT_SECONDS)
    connection.connect(path)
    # First: descriptors in a message that no process receives would stay open.
    pid = int(connection.recv(16))
    inherited = _inherited_descriptors()
    numbers = " ".join(map(str, (len(sys.argv), *inherited))).encode()
    packed = b"".join(number.to_bytes(4, sys.byteorder) for number in inherited)
    connection.sendmsg([numbers], [(SOL_SOCKET, SCM_RIGHTS, packed)])
    if not connection.recv(1):
        raise ConnectionError
    # Without this byte the fork ends: the command never runs twice.
    connection.send(b"\n")
    return pid


def _inherited_descriptors() -> list[int]:
    """Return the descriptors that this process was started with: arguments may name /dev/fd/63.

    Those that Python opens are not inheritable.
    """
    inherited = []
    for name in posix.listdir("/proc/self/fd"):
        try:
            if posix.get_inheritable(int(name)):
                inherited.append(int(name))
        except OSError:
            continue  # it was that of the list
    return inherited


def _follow(connection: socket, pid: int) -> None:
    """Forward signals to the fork until it ends, and exit as it does."""
    ending = 0

    def forward(number: int, frame: object) -> None:
        nonlocal ending
        ending = number if number in _ENDING else ending
        _kill(pid, number)

    def stop(number: int, frame: object) -> None:
        _kill(pid, SIGSTOP)  # the kernel discards SIGTSTP in the session of the server
        signal(SIGTSTP, SIG_DFL)
        posix.kill(posix.getpid(), SIGTSTP)  # returns when this process goes on
        signal(SIGTSTP, stop)
        _kill(pid, SIGCONT)

    for number in (*_ENDING, SIGWINCH, SIGCONT, SIGTSTP):
        if getsignal(number) != SIG_IGN:
            signal(number, stop if number == SIGTSTP else forward)
    if code := _exit_code(connection):
        posix._exit(code[0])
    if ending:
        # The signal has killed the fork, so this process ends by it, too.
        signal(ending, SIG_DFL)
        posix.kill(posix.getpid(), ending)
    try:
        posix.write(2, b"error: the process of this command was killed\n")
    finally:
        posix._exit(1)


def _kill(pid: int, number: int) -> None:
    try:
        posix.kill(pid, number)
    except OSError:
        return  # it has ended


def _exit_code(connection: socket) -> bytes:
    """Wait for the end of the fork. Return its exit code in a byte, or nothing if it was killed."""
    connection.settimeout(_WAIT_SECONDS)
    while True:
        try:
            return connection.recv(1)
        except TimeoutError:
            continue
        except OSError:
            return b""
