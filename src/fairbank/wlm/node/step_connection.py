"""Connection to a step daemon, and the wait for the end of a process that is not a child."""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from pathlib import Path
from typing import Any

from fairbank.core.errors import Unavailable
from fairbank.wlm.stepd.processes import read_process
from fairbank.wlm.stepd.step import socket_path

_BACKLOG_SECONDS = 0.05  # pause between two attempts to connect
ANSWER_SECONDS = 2.0
"""Maximum time until a step daemon answers: its user can stop it, and others must not wait then."""


class StepConnection:
    """Connection to the step daemon of a directory; requests are answered in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._answers: deque[asyncio.Future[dict[str, Any]]] = deque()
        self._task = asyncio.get_running_loop().create_task(self._read(reader))

    @classmethod
    async def open(cls, directory: Path) -> StepConnection | None:
        """Connect to a step daemon; None if it does not listen any more."""
        while True:
            try:
                with socket_path(str(directory)) as path:
                    return cls(*await asyncio.open_unix_connection(path))
            except BlockingIOError:  # its backlog is full
                await asyncio.sleep(_BACKLOG_SECONDS)
            except OSError:
                return None

    async def request(
        self, *, wait: float | None = ANSWER_SECONDS, **message: object
    ) -> dict[str, Any]:
        """Send a request and return its answer.

        Raises Unavailable if the step has ended, or if it has not answered in `wait` seconds; then
        it may carry out the request later.
        """
        if self._task.done():
            raise _ended()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        self._writer.write(json.dumps(message).encode() + b"\n")
        try:
            async with asyncio.timeout(wait):
                return await answer
        except TimeoutError:
            text = f"the step daemon has not answered within {wait:g} s"
            raise Unavailable(text, remedy="try again later") from None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                answer = self._answers.popleft()
                if not answer.done():
                    answer.set_result(json.loads(line))
        except OSError:
            pass  # the step daemon was killed
        finally:
            for answer in self._answers:
                if not answer.done():
                    answer.set_exception(_ended())

    def close(self) -> None:
        self._task.cancel()
        self._writer.close()


def _ended() -> Unavailable:
    return Unavailable("the step has ended", remedy="see how it ended")


async def wait_for_process(pid: int, start: int) -> None:
    """Return when the process with this number and start time has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        process = read_process(pid)
        if process is None or process.start != start:
            return  # another process has the number now
        loop.add_reader(handle, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
