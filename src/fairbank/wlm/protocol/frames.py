"""Frames: the length of the body (4 bytes), the kind (1), the number (4), and the body.

All numbers have the most significant byte first. The number is that of the request, and the answer
has the same; a message that is neither has the number 0. Standard library only, so that commands
start fast.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

VERSION = 2
"""Version of the protocol between daemons. Both sides must speak the same one."""
BODY_MAX = 16 * 1024 * 1024
BODY_MAX_BEFORE_HELLO = 64 * 1024
NUMBER_MAX = 2**32 - 1
MESSAGE, REQUEST, ANSWER, ERROR = 1, 60, 61, 62
"""Kinds of frames: between daemons, and between a command and the controller."""
OUTPUT, ERRORS, EXITED, FINISHED = 70, 71, 72, 73
"""Kinds of frames from a step daemon to srun: what a task has written (the number is its rank; an
empty body: the stream has ended), the wait status of a task, and the end of the step.
"""
OUT_OF_MEMORY_STATUS = 125
"""Wait status of what was killed because of its memory: 0:125 as in Slurm, and no real signal."""
INPUT, INPUT_TAKEN, CREDIT, SIGNAL, WINDOW_SIZE, WRITTEN, MISSED = 74, 75, 76, 77, 78, 79, 80
"""Kinds of frames about input, credit and terminals. Input with an empty body is the end of input.
The number of INPUT_TAKEN counts bytes that all tasks have taken; that of CREDIT bytes of output
that srun takes. SIGNAL has a signal number, WINDOW_SIZE rows and columns in its body. WRITTEN has a
rank, and in its body a kind of output and how many of its bytes srun has written: no other srun
needs them any more. MISSED has the same about bytes that come no more, since srun took them too
late; it counts them as written.
"""

STATUS = struct.Struct("!i")
"""Body of EXITED: the wait status."""
BYTE_COUNT = struct.Struct("!BQ")
"""Body of WRITTEN and MISSED: kind of output, and number of bytes."""
SIZE = struct.Struct("!HH")
"""Body of WINDOW_SIZE: rows and columns of a terminal."""

_HEADER = struct.Struct("!IBI")


class FrameError(Exception):
    """Data that is no sequence of frames. The connection cannot go on."""


class Frame(NamedTuple):
    """Frame: kind of the message, number of the request, and encoded message."""

    kind: int
    number: int
    body: bytes


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame. Raises FrameError if it is too long."""
    if len(frame.body) > BODY_MAX:
        raise FrameError(_too_long(len(frame.body), BODY_MAX))
    return _HEADER.pack(len(frame.body), frame.kind, frame.number) + frame.body


class FrameDecoder:
    """Decoder of the frames of one connection.

    `body_max` is the limit for a body. It is small until the peer has introduced itself, so that a
    stranger cannot make this process allocate much memory.
    """

    def __init__(self, body_max: int = BODY_MAX_BEFORE_HELLO) -> None:
        """Begin without data."""
        self.body_max = body_max
        self._rest = bytearray()

    @property
    def is_within_frame(self) -> bool:
        """True if the data so far ends within a frame."""
        return bool(self._rest)

    def decode(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with this data. Raises FrameError."""
        self._rest += data
        while len(self._rest) >= _HEADER.size:
            length, kind, number = _HEADER.unpack_from(self._rest)
            if length > self.body_max:
                raise FrameError(_too_long(length, self.body_max))
            end = _HEADER.size + length
            if len(self._rest) < end:
                return
            body = bytes(self._rest[_HEADER.size : end])
            del self._rest[:end]
            yield Frame(kind, number, body)


def _too_long(length: int, limit: int) -> str:
    return f"a frame of {length} bytes; at most {limit} are allowed"
