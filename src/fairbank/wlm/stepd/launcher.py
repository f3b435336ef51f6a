"""Launcher: `python -m fairbank.wlm.stepd.launcher`. Forks the step daemons.

The node daemon starts it before it has a thread or an event loop: to fork a process with threads is
not safe. Its standard input is a socket of the type SOCK_SEQPACKET. A request is the directory of a
step. The answer is the process id of the step daemon, or an error message. It ends with the node
daemon; the step daemons go on.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress

from fairbank.wlm.stepd.processes import boot_id
from fairbank.wlm.stepd.signals import reset_signals
from fairbank.wlm.stepd.step import socket_path
from fairbank.wlm.stepd.step_daemon import serve_step

MODULE = "fairbank.wlm.stepd.launcher"
REQUEST_MAX = 4_096
_BACKLOG = 8
_IGNORED = "HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU PIPE".split()
"""Signals to all processes of a user or of a terminal, or to the node daemon."""


def main() -> None:
    """Serve requests until the node daemon closes its end of the socket."""
    reset_signals()  # the node daemon may have blocked some
    for name in _IGNORED:  # the step daemons inherit that
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
    os.close(os.pidfd_open(os.getpid()))  # fails here, and not later, on Linux before 5.3
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # step daemons that end leave no zombies
    boot_id()  # read once for all step daemons
    gc.freeze()  # a collection in a step daemon would copy the memory that they share
    with socket.socket(fileno=os.dup(0)) as connection:
        os.close(0)
        os.open(os.devnull, os.O_RDWR)  # gets the number 0, the lowest that is free
        while request := connection.recv(REQUEST_MAX):
            answer = _launch(os.fsdecode(request), connection)
            with suppress(BrokenPipeError):  # the node daemon was killed
                connection.send(answer.encode())


def _launch(directory: str, connection: socket.socket) -> str:
    """Fork the step daemon of a directory. Return its process id, or an error message."""
    try:
        # Before the fork, so that the node daemon can connect as soon as it has the answer.
        listener = _listen(directory)
        pid = os.fork()
    except OSError as error:
        return f"cannot start a step daemon in {directory}: {error.strerror or error}"
    if pid == 0:
        connection.close()
        try:
            serve_step(directory, listener)
        except BaseException:  # noqa: BLE001 - this process must not go on as a launcher
            traceback.print_exc(file=sys.stderr)
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    listener.close()
    return str(pid)


def _listen(directory: str) -> socket.socket:
    """Return the socket for requests to a step daemon."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_path(directory) as path:
            listener.bind(path)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


if __name__ == "__main__":
    main()
