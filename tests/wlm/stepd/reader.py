"""srun as the step daemon sees it: a connection that takes output, and gives input and credit."""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

from fairbank.wlm.protocol import frames
from fairbank.wlm.protocol.frames import Frame, FrameDecoder, encode_frame
from tests.wlm.stepd.steps import StartedStep, connect


class Reader:
    """Connected srun. `output` has what the tasks wrote, by kind of frame and rank."""

    def __init__(
        self,
        step: StartedStep | Path,
        origin: str = "end",
        *,
        wants_input: bool = False,
        credit: int = 0,
    ) -> None:
        """Attach to a step, or to that of a directory."""
        self.output: dict[tuple[int, int], bytes] = defaultdict(bytes)
        self.ended: set[tuple[int, int]] = set()
        self.exits: dict[int, int] = {}
        self.missed: Counter[tuple[int, int]] = Counter()
        self.is_finished = False
        self.input_taken = 0
        self._decoder = FrameDecoder()
        self.connection = connect(step if isinstance(step, Path) else step.directory)
        request = {"kind": "attach", "from": origin, "input": wants_input}
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += self.connection.recv(1)
        self.answer = json.loads(answer)
        if credit:
            self.send(frames.CREDIT, credit)

    def send(self, kind: int, number: int = 0, body: bytes = b"") -> None:
        self.connection.sendall(encode_frame(Frame(kind, number, body)))

    def write(self, kind: int, rank: int, count: int) -> None:
        """Say that some output is written."""
        with suppress(BrokenPipeError):  # it has sent everything, and ended
            self.send(frames.WRITTEN, rank, struct.pack("!BQ", kind, count))

    def receive(self, *, is_generous: bool = True) -> bool:
        """Take what comes next, and say that it is written. Return False at the end of the
        connection.
        """
        try:
            data = self.connection.recv(65_536)
        except ConnectionResetError:  # a killed step daemon had not read everything
            data = b""
        taken = 0
        for frame in self._decoder.decode(data):
            key = frame.kind, frame.number
            match frame.kind:
                case frames.OUTPUT | frames.ERRORS if frame.body:
                    self.output[key] += frame.body
                    taken += len(frame.body)
                    if is_generous:
                        self.write(*key, len(frame.body))
                case frames.OUTPUT | frames.ERRORS:
                    self.ended.add(key)
                case frames.EXITED:
                    self.exits[frame.number] = struct.unpack("!i", frame.body)[0]
                case frames.MISSED:
                    kind, count = struct.unpack("!BQ", frame.body)
                    self.missed[kind, frame.number] += count
                    self.write(kind, frame.number, count)
                case frames.INPUT_TAKEN:
                    self.input_taken += frame.number
                case frames.FINISHED:
                    self.is_finished = True
        if taken and is_generous:
            with suppress(BrokenPipeError):
                self.send(frames.CREDIT, taken)
        return bool(data)

    def receive_all(self) -> None:
        """Take everything until the end of the step."""
        while not self.is_finished:
            assert self.receive()
        self.close()

    def receive_until(self, text: bytes, rank: int = 0, kind: int = frames.OUTPUT) -> None:
        while text not in self.output[kind, rank]:
            assert self.receive()

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
