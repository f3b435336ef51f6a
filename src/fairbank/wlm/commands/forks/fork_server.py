"""Fork server of the commands: `python -m fairbank.wlm.commands.forks.fork_server SOCKET`.

It has the modules of all commands. A fork of it runs a command in the place of a client, a process
of the same user: with the descriptors, environment, working directory and limits of the client, and
not longer than this lives. A client that a fork cannot replace runs its command itself.
"""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from fairbank.wlm.commands import program

_BACKLOG = 128  # commands that are started at once
_CLIENT_SECONDS = 10.0
"""Longest wait for each message of a client."""
_PAUSE_SECONDS = 0.1
"""Pause after a fork that failed."""
_LATER_MODULES = ("job_submission", "steps.background", "steps.multi_prog", "steps.srun")
"""Modules of commands that these import when they need them."""
_SAME_STATUS = ("Uid", "Gid", "Groups", "CapEff", "NoNewPrivs", "Seccomp")
"""Lines of /proc/PID/status that must be those of the server."""
_SAME_LINKS = ("root", "ns/mnt", "ns/net", "ns/pid", "ns/user", "ns/uts")
"""Links in /proc/PID that must be those of the server."""
_DESCRIPTORS_MAX = 253
"""Most descriptors in a message, SCM_MAX_FD of Linux."""
_OWN_DESCRIPTORS = 256
"""First number for the descriptors of the fork itself."""
_MESSAGE_MAX = 4_096  # of as many numbers
_SIGNALS = signal.valid_signals()
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class ClientProcess(NamedTuple):
    """Process that a fork takes the place of. `arguments` begin with the path of the command."""

    pid: int
    arguments: list[str]
    environment: Mapping[bytes, bytes]
    umask: int
    ignored_signals: set[int]
    blocked_signals: set[int]


def main() -> None:
    """Serve until a signal ends this process."""
    _reset_signals()
    for module in set(program.MODULES.values()):
        import_module(module)
    for name in _LATER_MODULES:
        import_module(f"{program.__package__}.{name}")
    path = Path(sys.argv[1])
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        os.umask(0o177)
        listener.bind(str(path))
        listener.listen(_BACKLOG)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that end leave no zombies
        gc.collect()
        gc.freeze()  # a collection in a fork would copy the memory that they share
        gc.set_threshold(100_000)  # a command is over before it has that much garbage
        while True:
            try:
                _fork(listener)
            except OSError as error:  # clients run their commands themselves
                print(f"cannot fork: {error}", file=sys.stderr, flush=True)
                time.sleep(_PAUSE_SECONDS)


def _fork(listener: socket.socket) -> None:
    """Fork the process for the next client, and wait until that comes.

    Raises:
        OSError: there is no new process, or it has ended without a client.
    """
    reader, writer = os.pipe()
    with open(reader, "rb", buffering=0) as client:
        try:
            if os.fork() == 0:
                try:
                    client.close()
                    _wait_for_client(listener, writer)
                finally:
                    os._exit(1)  # it must not go on as a server
        finally:
            os.close(writer)
        if not client.read(1):
            raise ChildProcessError("a fork has ended without a client")


def _wait_for_client(listener: socket.socket, server: int) -> None:
    """Wait for a client, tell the server, and run the command. Return if the server has ended.

    Args:
        listener: the socket of the server.
        server: writing end of a pipe to the server.
    """
    identity = _identity("self", _status("self"))
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    poller.register(server, 0)  # an error comes without a request: the server has ended
    if server in dict(poller.poll()):
        return
    connection, _ = listener.accept()
    os.write(server, b"\n")
    _run_fork(connection, identity)


def _reset_signals() -> None:
    """Handle signals as a new Python does: the server may have been started with some ignored."""
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE, signal.SIGXFSZ}
    for number in _SIGNALS - kept:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_fork(accepted: socket.socket, identity: Sequence[str]) -> None:
    """Run the command of a client in this process, and end it unless the client cannot be replaced.

    Args:
        accepted: the connection to the client.
        identity: what the client must have in common with the server.
    """
    try:
        number = fcntl.fcntl(accepted, fcntl.F_DUPFD_CLOEXEC, _OWN_DESCRIPTORS)
        connection = socket.socket(fileno=number)
        connection.settimeout(_CLIENT_SECONDS)
        connection.send(b"%d" % os.getpid())
        client = _receive_client(connection, identity)
        connection.send(b"\n")
        if not connection.recv(1):
            return
        _end_with_client(connection)
    except (OSError, ValueError):
        return  # the client sees the end of the connection, or has gone
    sys.argv = client.arguments
    code = 1
    try:
        code = program.run_with_standard_files(os.path.basename(sys.argv[0]), sys.argv[1:])
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc(file=sys.stderr)
    os.closerange(0, _OWN_DESCRIPTORS)  # who waits for the client finds its files closed
    connection.send(bytes([code & 0xFF]))
    os._exit(code)


def _receive_client(connection: socket.socket, identity: Sequence[str]) -> ClientProcess:
    """Receive the descriptors of the client, and make this process like it.

    Raises:
        OSError: it has ended, or has something that this process cannot take over.
        ValueError: the message has not as many numbers as descriptors.
    """
    message, received, _, _ = socket.recv_fds(connection, _MESSAGE_MAX, _DESCRIPTORS_MAX)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("3i", credentials)
    if uid != os.geteuid():
        raise PermissionError
    count, *numbers = map(int, message.split())
    client = _read_client(pid, count, identity)
    _take_attributes(client)
    _take_descriptors(dict(zip(numbers, received, strict=True)))
    return client


def _read_client(pid: int, count: int, identity: Sequence[str]) -> ClientProcess:
    """Read a process from /proc. Raises PermissionError if a fork cannot replace it.

    Args:
        pid: the process.
        count: its arguments with the path of the command, without Python and the options of that.
        identity: what it must have in common with the server.
    """
    status = _status(pid)
    if _identity(pid, status) != identity:
        raise PermissionError
    entries = _read(f"/proc/{pid}/environ").split(b"\0")
    # Of two entries with the same name the first one counts.
    pairs = (entry.partition(b"=") for entry in reversed(entries))
    environment = {name: value for name, equals, value in pairs if equals and name}
    # Which characters the output may have depends on the locale.
    locale = next(filter(None, map(environment.get, (b"LC_ALL", b"LC_CTYPE", b"LANG"))), b"C")
    if locale not in (b"C", b"POSIX") and b"UTF8" not in locale.upper().replace(b"-", b""):
        raise PermissionError
    arguments = _read(f"/proc/{pid}/cmdline").split(b"\0")[:-1][-count:]
    return ClientProcess(
        pid,
        list(map(os.fsdecode, arguments)),
        environment,
        int(status["Umask"], 8),
        _signals(status["SigIgn"]),
        _signals(status["SigBlk"]),
    )


def _take_attributes(client: ClientProcess) -> None:
    """Give this process what a new process has from the one that starts it. Raises OSError."""
    for limit in _LIMITS:
        if (values := resource.prlimit(client.pid, limit)) != resource.getrlimit(limit):
            resource.setrlimit(limit, values)
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, client.pid))
    os.sched_setaffinity(0, os.sched_getaffinity(client.pid))
    os.chdir(f"/proc/{client.pid}/cwd")
    os.umask(client.umask)
    for name in os.environb.keys() - client.environment.keys():
        del os.environb[name]
    for name, value in client.environment.items():
        if os.environb.get(name) != value:
            os.environb[name] = value
    time.tzset()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in client.ignored_signals:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, client.blocked_signals)


def _take_descriptors(received: Mapping[int, int]) -> None:
    """Give descriptors the numbers that they have in the client, and close all others.

    Raises PermissionError if a number is for descriptors of the fork itself.
    """
    if max(received, default=0) >= _OWN_DESCRIPTORS:
        raise PermissionError
    copies = {
        number: fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _OWN_DESCRIPTORS)
        for number, descriptor in received.items()
    }
    os.closerange(0, _OWN_DESCRIPTORS)
    for number, copy in copies.items():
        os.dup2(copy, number)
        os.close(copy)


def _status(pid: int | str) -> dict[str, str]:
    lines = _read(f"/proc/{pid}/status").decode().splitlines()
    return dict(line.split(":", 1) for line in lines)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _identity(pid: int | str, status: Mapping[str, str]) -> list[str]:
    """Return the attributes of a process that a fork cannot take over."""
    links = (os.readlink(f"/proc/{pid}/{link}") for link in _SAME_LINKS)
    return [*(status.get(name, "") for name in _SAME_STATUS), *links]


def _signals(mask: str) -> set[int]:
    """Return the numbers of a mask of signals in /proc/PID/status, without those of libc."""
    bits = int(mask, 16)
    return {number for number in _SIGNALS if bits >> (number - 1) & 1}


def _end_with_client(connection: socket.socket) -> None:
    """Let the kernel kill this process as soon as the client closes its end, as by its own end."""
    connection.setblocking(False)
    number = connection.fileno()
    # The signal and its receiver come before the mode that sends it.
    fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(number, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(number, fcntl.F_SETFL, fcntl.fcntl(number, fcntl.F_GETFL) | os.O_ASYNC)
    with suppress(BlockingIOError):  # the client is there
        connection.recv(1)
        os._exit(1)  # it has gone before, without a signal


if __name__ == "__main__":
    main()
