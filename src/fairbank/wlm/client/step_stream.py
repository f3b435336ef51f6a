"""Connection of srun to the step daemon of one node: output, input, credit, exits of tasks."""

from __future__ import annotations

import json
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator

from fairbank.core.errors import Unavailable
from fairbank.wlm.client.requests import StepNode
from fairbank.wlm.protocol import frames
from fairbank.wlm.protocol.frames import Frame, FrameDecoder, FrameError, encode_frame

CREDIT_BYTES = 1024 * 1024
"""Output that srun takes before it has written what came earlier."""
INPUT_WINDOW = 64 * 1024
"""Input that may be on its way to a node."""
_CHECK_SECONDS = 1.0
"""Pause between two questions whether a step still runs whose daemon does not listen."""
_PAUSE_SECONDS = 0.002, 0.1  # first and longest pause between two attempts to connect
_CHUNK = 256 * 1024
_NOTE_BYTES = 32 * 1024
"""Output after which the step daemon learns what was written. An srun that is killed just before
it may have written as much that the next one gets again.
"""


class StepDaemonLost(Unavailable):
    """Step daemon that ended, or closed its connection, before the step ended on its `node`."""

    def __init__(self, node: str) -> None:
        super().__init__(f"the step daemon on node {node} has ended before its step")
        self.node = node


class StepStream:
    """Connection to a step daemon. It is not blocking.

    `unsent` are the bytes that the socket has not taken, `open_input` the bytes of input that the
    tasks have not taken. `_credit` are the bytes of output that came since the last frame about
    them, `_written` those that were written since. `is_finished`: everything has come.
    """

    def __init__(
        self, node: StepNode, origin: str, *, wants_input: bool, check: Callable[[], None]
    ) -> None:
        """Connect, as soon as the step daemon listens. Raises Unavailable.

        Args:
            node: node of the step.
            check: called now and then, raises Unavailable if the tasks of the node have ended.
            origin: "own" for the srun of the step, which misses nothing. For others, "start" for
                all output that is kept, "end" for what comes from now on, and what no srun has
                taken.
            wants_input: whether there is input for the tasks.
        """
        self.node = node
        self._decoder = FrameDecoder()
        self.unsent = bytearray()
        self.open_input = 0
        self._credit = 0
        self._written: Counter[tuple[int, int]] = Counter()
        self.is_finished = False
        request = {"kind": "attach", "from": origin, "input": wants_input}
        self.socket, line, self._first = _attach(node, json.dumps(request).encode(), check)
        self.has_input: bool = json.loads(line)["input"]
        self.socket.setblocking(False)
        self.send(frames.CREDIT, CREDIT_BYTES)

    def send(self, kind: int, number: int = 0, body: bytes = b"") -> None:
        """Send a frame as far as the socket takes it; `flush` sends the rest."""
        if kind == frames.INPUT:
            self.open_input += len(body)
        self.unsent += encode_frame(Frame(kind, number, body))
        self.flush()

    def note_written(self, frame: Frame, count: int) -> None:
        """Note that a frame of output was dealt with, and how many bytes of its stream are written.

        Those are fewer than came while a line waits for its end.
        """
        self._credit += len(frame.body)
        self._written[frame.kind, frame.number] += count
        if self._credit >= _NOTE_BYTES:
            self.tell_written()

    def note_missed(self, kind: int, rank: int, count: int) -> None:
        """Note as written what does not come any more."""
        self._written[kind, rank] += count

    def tell_written(self) -> None:
        """Say what was written, and take as much output as came."""
        if self._credit:
            for (kind, rank), count in self._written.items():
                self.unsent += encode_frame(
                    Frame(frames.WRITTEN, rank, frames.BYTE_COUNT.pack(kind, count))
                )
            self._written.clear()
            self.send(frames.CREDIT, self._credit)
            self._credit = 0

    def flush(self) -> None:
        """Send what is left, as far as the socket takes it."""
        try:
            while self.unsent:
                del self.unsent[: self.socket.send(self.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.unsent.clear()  # the end is read

    def receive(self) -> Iterator[Frame]:
        """Yield the frames that have come. Raises StepDaemonLost at an early end."""
        data, self._first = self._first, b""
        try:
            data += self.socket.recv(_CHUNK)
            is_over = not data
        except BlockingIOError:
            is_over = False
        except OSError:
            is_over = True
        try:
            yield from map(self._noted, self._decoder.decode(data))
        except FrameError as error:
            raise Unavailable(f"node {self.node.node} sent {error}") from error
        if is_over and not self.is_finished:
            raise StepDaemonLost(self.node.node)

    def _noted(self, frame: Frame) -> Frame:
        if frame.kind == frames.INPUT_TAKEN:
            self.open_input -= frame.number
        elif frame.kind == frames.FINISHED:
            self.is_finished = True
        return frame


def missed_output(frame: Frame) -> tuple[int, int]:
    """Return the kind of output and the number of bytes of a frame MISSED."""
    kind, count = frames.BYTE_COUNT.unpack(frame.body)
    return kind, count


def exit_status(frame: Frame) -> int:
    """Return the wait status of a frame EXITED."""
    (status,) = frames.STATUS.unpack(frame.body)
    return int(status)


def _attach(
    node: StepNode, request: bytes, check: Callable[[], None]
) -> tuple[socket.socket, bytes, bytes]:
    """Return a connection to a step daemon, its answer, and the bytes that came after it.

    The step daemon may not listen yet. One whose tasks have ended may listen for a while.
    """
    pause = _PAUSE_SECONDS[0]
    check_at = time.monotonic() + (_CHECK_SECONDS if node.is_running else 0)
    ended: Unavailable | None = None
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            # The kernel takes only 107 bytes of a path.
            folder = os.open(node.directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                connection.connect(f"/proc/self/fd/{folder}/socket")
            finally:
                os.close(folder)
            connection.sendall(request + b"\n")
            answer = b""
            while b"\n" not in answer:
                data = connection.recv(_CHUNK)
                if not data:
                    raise ConnectionResetError
                answer += data
        except OSError:
            connection.close()
        else:
            line, _, rest = answer.partition(b"\n")
            return connection, line, rest
        if ended is not None:
            raise ended
        if time.monotonic() >= check_at:
            try:
                check()
            except Unavailable as error:  # before this its daemon may have begun to listen
                ended = error
                continue
            check_at = time.monotonic() + _CHECK_SECONDS
        time.sleep(pause)
        pause = min(1.25 * pause, _PAUSE_SECONDS[1])  # at most a fifth of the wait is lost
