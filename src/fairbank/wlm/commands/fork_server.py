"""Fork server of the commands: `python -m fairbank.wlm.commands.fork_server SOCKET`.

It has the modules of all commands. Each command is run by a fork of it, which takes the place of
its client, a process of the same user: it has the files, environment, working directory and limits
of the client, and ends with it. What a fork cannot take over the client has to do itself.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

from fairbank.wlm.commands import program

_BACKLOG = 128
_CLIENT_SECONDS = 10.0
"""Time that a client has for its part."""
_PAUSE_SECONDS = 0.1
"""Pause after a failed fork, or when there are too many files."""
_LATER_MODULES = ("job_submission", "steps.background", "steps.srun")
"""Modules of commands that these import when they need them."""
_SAME_STATUS = ("Uid", "Gid", "Groups", "CapEff", "NoNewPrivs", "Seccomp")
"""Lines of /proc/PID/status that must be those of the server."""
_SAME_LINKS = ("root", "ns/mnt", "ns/net", "ns/pid", "ns/user", "ns/uts")
"""Links in /proc/PID that must be those of the server."""
_FILES_MAX = 253
"""Most files in a message to a socket, SCM_MAX_FD of Linux."""
_HIGH = 256
"""Numbers of files from here on are for the fork itself."""
_MESSAGE_MAX = 4_096
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class ClientProcess(NamedTuple):
    """Process that a fork takes the place of."""

    pid: int
    words: list[str]
    environment: Mapping[bytes, bytes]
    umask: int
    ignored_signals: set[int]
    blocked_signals: set[int]


def main() -> None:
    """Serve until a signal ends this process."""
    for module in set(program.MODULES.values()):
        import_module(module)
    for name in _LATER_MODULES:
        import_module(f"{program.__package__}.{name}")
    own = _identity("self", _status("self"))
    path = Path(sys.argv[1])
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        os.umask(0o177)
        listener.bind(str(path))
        listener.listen(_BACKLOG)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that end leave no zombies
        gc.collect()
        gc.freeze()  # a collection in a fork would copy the memory that they share
        gc.set_threshold(100_000)
        while True:
            try:
                connection, _ = listener.accept()
                with connection:
                    if os.fork() == 0:
                        _run_fork(connection, own)
            except OSError:  # the client runs the command itself
                time.sleep(_PAUSE_SECONDS)


def _run_fork(accepted: socket.socket, own: list[str]) -> NoReturn:
    """Run the command of a client in this process, and end it."""
    try:
        connection = socket.socket(fileno=fcntl.fcntl(accepted, fcntl.F_DUPFD_CLOEXEC, _HIGH))
        connection.settimeout(_CLIENT_SECONDS)
        connection.send(b"%d" % os.getpid())
        words = _take_place(connection, own)
        connection.send(b"\n")
        if not connection.recv(1):
            os._exit(0)
        _end_with_client(connection)
    except (OSError, ValueError):
        os._exit(0)  # the client sees the end of the connection, or has gone
    code = 1
    try:
        code = program.run_here(os.path.basename(words[0]), words[1:])
    except BaseException:  # noqa: BLE001 - this process must not go on as a server
        traceback.print_exc(file=sys.stderr)
    with suppress(OSError):
        connection.send(bytes([code & 0xFF]))
    os._exit(code)


def _take_place(connection: socket.socket, own: list[str]) -> list[str]:
    """Give this process files, environment, directory and limits of the client. Return its words.

    Raises OSError if the client has ended, or has something that this process cannot take over.
    """
    numbers, files, _, _ = socket.recv_fds(connection, _MESSAGE_MAX, _FILES_MAX)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("3i", credentials)
    if uid != os.geteuid() or not files:
        raise PermissionError
    client = _read_client(pid, own)
    for limit in _LIMITS:
        if (values := resource.prlimit(pid, limit)) != resource.getrlimit(limit):
            resource.setrlimit(limit, values)
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, pid))
    os.chdir(f"/proc/{pid}/cwd")
    os.umask(client.umask)
    for name in os.environb.keys() - client.environment.keys():
        del os.environb[name]
    for name, value in client.environment.items():
        if os.environb.get(name) != value:
            os.environb[name] = value
    time.tzset()
    _place_files(dict(zip(map(int, numbers.split()), files, strict=True)))
    sys.stdin, sys.stdout = (os.fdopen(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w")))
    sys.argv = client.words
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in client.ignored_signals:
        with suppress(OSError):  # some numbers belong to the C library
            signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, client.blocked_signals)
    return client.words


def _read_client(pid: int, own: list[str]) -> ClientProcess:
    """Return the client. Raises OSError."""
    status = _status(pid)
    if _identity(pid, status) != own:
        raise PermissionError
    entries = _read(f"/proc/{pid}/environ").split(b"\0")
    pairs = (entry.partition(b"=") for entry in entries)
    environment = {name: value for name, equals, value in pairs if equals and name}
    # Which characters the output may have depends on the locale.
    locale = next(filter(None, map(environment.get, (b"LC_ALL", b"LC_CTYPE", b"LANG"))), b"C")
    if locale not in (b"C", b"POSIX") and b"UTF8" not in locale.upper().replace(b"-", b""):
        raise PermissionError
    # Before the words of the command are Python, its options and the program.
    words = _read(f"/proc/{pid}/cmdline").split(b"\0")[2:-1]
    return ClientProcess(
        pid,
        list(map(os.fsdecode, words)),
        environment,
        int(status["Umask"], 8),
        _signals(status["SigIgn"]),
        _signals(status["SigBlk"]),
    )


def _place_files(files: Mapping[int, int]) -> None:
    """Give files the numbers that they have in the client, and close all others."""
    if max(files) >= _HIGH:
        raise PermissionError
    high = {
        number: fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _HIGH) for number, file in files.items()
    }
    os.closerange(0, _HIGH)
    for number, file in high.items():
        os.dup2(file, number)
        os.close(file)


def _status(pid: int | str) -> dict[str, str]:
    lines = _read(f"/proc/{pid}/status").decode().splitlines()
    return dict(line.split(":", 1) for line in lines)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _identity(pid: int | str, status: Mapping[str, str]) -> list[str]:
    """Return what a fork cannot change, or only once."""
    links = (os.readlink(f"/proc/{pid}/{link}") for link in _SAME_LINKS)
    return [*(status.get(name, "") for name in _SAME_STATUS), *links]


def _signals(mask: str) -> set[int]:
    """Return the numbers of a mask of signals in /proc/PID/status."""
    bits = int(mask, 16)
    return {number for number in signal.valid_signals() if bits >> (number - 1) & 1}


def _end_with_client(connection: socket.socket) -> None:
    """Let the kernel kill this process when the client closes its end, as by its own end."""
    connection.setblocking(False)
    number = connection.fileno()
    fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(number, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) | os.O_ASYNC)
    with suppress(BlockingIOError):  # the client is there
        connection.recv(1)
        os._exit(1)


if __name__ == "__main__":
    main()
