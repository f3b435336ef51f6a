"""Launcher, as the node daemon sees it: a process that forks the step daemons."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

from fairbank.core.errors import FairbankError
from fairbank.wlm.stepd.launcher import MODULE

ANSWER_SECONDS = 30.0
_ANSWER_MAX = 4_096

_log = logging.getLogger(__name__)


class LaunchFailed(FairbankError):
    """Failed start of a step daemon, as far as is known."""


class LauncherProcess:
    """Launcher of this daemon; a new one is started when it has died.

    Invariant: one request at a time is on its way, so that each answer belongs to the last request.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._start()

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        with theirs:
            # A new program and no fork: this process has threads and an event loop.
            # -I: no module from the directory in which the daemon was started.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", MODULE], stdin=theirs.fileno()
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    async def launch(self, directory: Path) -> None:
        """Start the step daemon of a directory.

        Raises:
            LaunchFailed: there was an error, or no answer. Without an answer it may still start.
        """
        loop, request = asyncio.get_running_loop(), os.fsencode(directory)
        async with self._lock:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    try:
                        await loop.sock_sendall(self._socket, request)
                    except OSError:  # it died earlier, so that it has not seen the request
                        self._replace()
                        await loop.sock_sendall(self._socket, request)
                    answer = (await loop.sock_recv(self._socket, _ANSWER_MAX)).decode()
            except (OSError, TimeoutError):
                answer = ""
            if not answer:
                self._replace()
                raise LaunchFailed("the launcher gave no answer and was replaced")
        if not answer.isdecimal():
            raise LaunchFailed(answer)

    def _replace(self) -> None:
        _log.warning(
            "the launcher %d has died or gives no answer: it is replaced", self._process.pid
        )
        self._process.kill()
        self.close()
        self._start()

    def close(self) -> None:
        """End the launcher; the step daemons go on."""
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ANSWER_SECONDS)
