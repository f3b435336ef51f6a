"""Client of the fork server, which has the modules of the commands already.

To load them takes most of the time of a short command. `socket` and `signal` would take more than
all of this, so their parts in C are used.
"""

import posix
from _signal import (  # type: ignore[import-not-found]  # it has no stub
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
from sys import byteorder

_ACCEPT_SECONDS = 2.0
"""Time that the server has to accept a command, before this process runs it."""
_SIGNAL_SECONDS = 1.0
"""Longest system call: Python handles a signal that comes just before one only after it."""
_FORWARDED = (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP)
_INTERACTIVE = ("salloc", "sattach")
"""Commands that need a terminal of their own."""


def run_in_fork(path: str, command: str) -> None:
    """Run this command in a fork of the server, and exit as it does.

    Return if it is not accepted, and nothing has been done: this process must run it then.

    Args:
        path: the socket of the server.
        command: name of the command, the last part of a path.
    """
    name = command.rpartition("/")[2]
    if name in _INTERACTIVE or (name == "srun" and any(map(posix.isatty, range(3)))):
        return  # job control of a shell works for processes that it has started
    if getsignal(SIGINT) is default_int_handler:
        signal(SIGINT, SIG_DFL)  # an end without a traceback
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(_ACCEPT_SECONDS)
        connection.connect(path)
        # Not before its number: files in a message that a server does not read stay open.
        fork = int(connection.recv(16))
        files = _inherited_files()
        descriptors = b"".join(number.to_bytes(4, byteorder) for number in files)
        numbers = " ".join(map(str, files)).encode()
        connection.sendmsg([numbers], [(SOL_SOCKET, SCM_RIGHTS, descriptors)])
        if not connection.recv(1):
            raise ConnectionError
        # Without it the fork ends: the command never runs twice.
        connection.send(b"\n")
    except (OSError, ValueError):
        connection.close()
        if getsignal(SIGINT) == SIG_DFL:
            signal(SIGINT, default_int_handler)
        return
    _follow(connection, fork)


def _inherited_files() -> list[int]:
    """Return the files that this process was started with; arguments may name them, as /dev/fd/63.

    All that Python opens is not inheritable.
    """
    files = []
    for name in posix.listdir("/proc/self/fd"):
        try:
            if posix.get_inheritable(int(name)):
                files.append(int(name))
        except OSError:
            continue  # it was that of the list
    return files


def _follow(connection: socket, fork: int) -> None:
    """Forward signals to the fork until it ends, and exit as it does."""
    forwarded = 0

    def forward(number: int, frame: object) -> None:
        nonlocal forwarded
        forwarded = number
        try:
            # A session without a terminal ignores SIGTSTP.
            posix.kill(fork, SIGSTOP if number == SIGTSTP else number)
        except OSError:
            return  # it has ended
        if number == SIGTSTP:
            posix.kill(posix.getpid(), SIGSTOP)

    for number in _FORWARDED:
        if getsignal(number) != SIG_IGN:
            signal(number, forward)
    connection.settimeout(_SIGNAL_SECONDS)
    while True:
        try:
            code = connection.recv(1)
        except TimeoutError:
            continue
        except OSError:
            code = b""
        break
    if code:
        posix._exit(code[0])
    # It was killed, if by a forwarded signal then so is this process.
    if forwarded not in (0, SIGCONT, SIGTSTP, SIGWINCH):
        signal(forwarded, SIG_DFL)
        posix.kill(posix.getpid(), forwarded)
    posix.write(2, b"error: the process of this command was killed\n")
    posix._exit(1)
