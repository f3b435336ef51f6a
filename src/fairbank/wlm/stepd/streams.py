"""Streams of a step: what its tasks write goes to sruns, and what srun reads goes to the tasks.

Output is read at once into a log, and sent as far as each srun has granted credit. So no task waits
for an srun that is slow, stopped or gone.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from fairbank.wlm.protocol.frames import (
    BYTE_COUNT,
    CREDIT,
    ERRORS,
    EXITED,
    FINISHED,
    INPUT,
    INPUT_TAKEN,
    MISSED,
    OUTPUT,
    SIGNAL,
    SIZE,
    STATUS,
    WINDOW_SIZE,
    WRITTEN,
    Frame,
    FrameDecoder,
    FrameError,
    encode_frame,
)
from fairbank.wlm.stepd.poller import READ, WRITE, Poller
from fairbank.wlm.stepd.signals import NUMBERS
from fairbank.wlm.stepd.step_input import TaskInput
from fairbank.wlm.stepd.stream_log import StreamLog, TaskOutput

BUFFER_BYTES = 8 * 1024 * 1024
"""Newest output of a step in memory; what is older is in files."""
LAG_MAX = 8 * 1024 * 1024
"""Output of a stream that is kept for a second srun, beside what the first one needs."""
DRAIN_SECONDS = 60.0
"""Time for which the output of a step that has ended is kept for an srun."""
_LOG_BYTES_MIN = 16 * 1024
_CHUNK = 32 * 1024
_UNSENT_MAX = 8 * _CHUNK
_TAKES_MAX = 16
"""Reads for what an srun has sent, which fits in its socket."""
_RETRY_SECONDS = 1.0
_LOOK_MILLISECONDS = 250
"""Pause between two looks whether the step is forgotten."""


class StreamEnds(NamedTuple):
    """Ends of the streams of a task: those of its daemon, or its own.

    None: it is a file, or stderr goes where stdout goes.
    """

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    is_terminal: bool = False


class _Srun:
    """Connected srun.

    `unsent` are the bytes for its socket, `credit` those of output that it still takes. It has got
    what is between its `begins` and `positions`, and has written what is before `written`.
    `waiting` are the outputs of which it does not have all.
    """

    def __init__(self, connection: socket.socket, has_input: bool) -> None:
        self.connection, self.has_input = connection, has_input
        self.decoder = FrameDecoder()
        self.unsent = bytearray()
        self.credit = 0
        self.begins: dict[TaskOutput, int] = {}
        self.positions: dict[TaskOutput, int] = {}
        self.written: dict[TaskOutput, int] = {}
        self.waiting: dict[TaskOutput, None] = {}
        self.events = 0
        self.is_finished = False


class StepStreams:
    """Streams of the tasks of a step, and the sruns that are connected."""

    def __init__(
        self,
        directory: str,
        poller: Poller,
        send_signal: Callable[[int], None],
        *,
        tasks: int,
        has_srun: bool,
    ) -> None:
        """Begin without tasks and sruns.

        Args:
            directory: directory of the step, for output that does not fit in memory.
            poller: calls the functions of this object.
            send_signal: sends a signal to the tasks.
            tasks: number of tasks, which have two output streams each.
            has_srun: whether an srun waits for the ends of the tasks.
        """
        self._directory, self._poller, self._send_signal = directory, poller, send_signal
        self._has_srun = has_srun
        self._log_bytes = max(BUFFER_BYTES // (2 * tasks), _LOG_BYTES_MIN)
        self._ranks: list[int] = []
        self._outputs: dict[tuple[int, int], TaskOutput] = {}  # by kind and rank
        self._readers: dict[int, _Srun] = {}
        self._input = TaskInput(poller, self._tell_taken)
        self._exits: dict[int, int] = {}
        self._is_finished = self._was_attached = False
        self._retry_at: float | None = None

    # ------------------------------------------------------------------ tasks

    def add_task(self, rank: int, ends: StreamEnds) -> None:
        """Begin to read what a task writes."""
        self._ranks.append(rank)
        for kind, descriptor in ((OUTPUT, ends.stdout), (ERRORS, ends.stderr)):
            if descriptor is not None:
                self._add_output(kind, rank, descriptor)
        if ends.stdin is not None:
            self._input.add_task(ends.stdin, is_terminal=ends.is_terminal)

    def _add_output(self, kind: int, rank: int, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        path = os.path.join(self._directory, f"stream.{kind}.{rank}")
        output = TaskOutput(kind, rank, descriptor, StreamLog(path, self._log_bytes))
        self._outputs[kind, rank] = output
        for reader in self._readers.values():
            reader.begins[output] = reader.positions[output] = reader.written[output] = 0
        self._listen(output)

    def end_starts(self) -> None:
        """Note that no other task will be added: each has had the input so far."""
        self._input.end_starts()

    def end_tasks(self, ranks: Sequence[int], status: int) -> None:
        """Tell the sruns how some tasks ended."""
        self._exits.update(dict.fromkeys(ranks, status))
        self._broadcast(b"".join(_exit_frame(rank, status) for rank in ranks))

    def write_errors(self, line: bytes) -> None:
        """Add a line of the step daemon to the first stream for errors.

        If the errors of all tasks go to files or a terminal, the line is a stream of its own.
        """
        for output in self._outputs.values():
            if output.kind == ERRORS:
                self._keep(output, line)
                return
        reader, writer = os.pipe()
        os.write(writer, line)
        os.close(writer)
        self._add_output(ERRORS, self._ranks[0] if self._ranks else 0, reader)

    def due(self) -> float | None:
        """Return the monotonic time at which `act` must be called; None: never."""
        return self._retry_at

    def act(self, now: float) -> None:
        """Try again to keep what a full disk did not take."""
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_at = None
            for output in self._outputs.values():
                if output.held:
                    data, output.held = output.held, b""
                    self._listen(output)
                    self._keep(output, data)
            if self._is_finished:
                self.finish()  # what it left open, because of the disk

    def _listen(self, output: TaskOutput) -> None:
        self._poller.register(output.descriptor, lambda: self._read_output(output))

    def _read_output(self, output: TaskOutput) -> bool:
        """Read what a task has written. Return False if there was nothing more."""
        try:
            data = os.read(output.descriptor, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that no process has open any more
            data = b""
        if data:
            self._keep(output, data)
        else:
            self._close_output(output)
        return bool(data)

    def _close_output(self, output: TaskOutput) -> None:
        self._poller.unregister(output.descriptor)
        os.close(output.descriptor)
        output.is_open = False
        self._offer(output)

    def _keep(self, output: TaskOutput, data: bytes) -> None:
        if output.log.is_full(len(data)):
            self._release(output)
        try:
            output.log.append(data)
        except OSError:
            output.held += data
            self._poller.unregister(output.descriptor)
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            return
        self._offer(output)

    def _offer(self, output: TaskOutput) -> None:
        for reader in list(self._readers.values()):
            reader.waiting[output] = None
            # Those that take nothing now cost nothing: their frames and sockets call `_serve`.
            if reader.credit and not reader.unsent:
                self._send(reader)

    # ------------------------------------------------------------------ sruns

    def attach(self, connection: socket.socket, origin: str, *, wants_input: bool) -> None:
        """Add an srun. The answer has the ranks, and whether the tasks get its input.

        Args:
            connection: its socket. Frames begin with the answer.
            origin: "start" for all output that is kept, "end" for what is written from now on.
                Without another srun, output that none has written is never left out. "own" is
                that of the srun of the step, which comes before others and misses nothing.
            wants_input: whether it has input for the tasks. Only one srun at a time gives it.
        """
        for known in list(self._readers.values()):
            self._take_all(known)  # one that was killed just before makes this one the first
        is_first, self._was_attached = not self._readers, True
        is_free = not (
            not self._input.takes_more or any(one.has_input for one in self._readers.values())
        )
        reader = _Srun(connection, wants_input and is_free)
        answer = {"ranks": self._ranks, "input": reader.has_input}
        reader.unsent += json.dumps(answer).encode() + b"\n"
        for output in self._outputs.values():
            position = output.log.end
            if origin in ("start", "own"):
                position = output.log.start
            elif is_first:
                position = output.shown
            reader.begins[output] = reader.positions[output] = reader.written[output] = position
            reader.waiting[output] = None
        for rank, status in self._exits.items():
            reader.unsent += _exit_frame(rank, status)
        connection.setblocking(False)
        added = {connection.fileno(): reader}
        self._readers = added | self._readers if origin == "own" else self._readers | added
        self._listen_to(reader)

    def _listen_to(self, reader: _Srun) -> None:
        events = READ | WRITE if reader.unsent else READ
        if events != reader.events:
            reader.events = events
            self._poller.register(reader.connection.fileno(), lambda: self._serve(reader), events)

    def _serve(self, reader: _Srun) -> None:
        """Receive what an srun has sent, and send what it takes."""
        try:
            is_open = self._take(reader)
        except BlockingIOError:
            is_open = True
        if is_open:
            self._send(reader)
        else:
            self._detach(reader)

    def _take(self, reader: _Srun) -> bool:
        """Receive what an srun has sent. Return False at its end. Raises BlockingIOError."""
        try:
            data = reader.connection.recv(_UNSENT_MAX)
            for frame in reader.decoder.decode(data):
                self._receive(reader, frame)
        except BlockingIOError:
            raise
        except (OSError, FrameError):
            return False
        return bool(data)

    def _take_all(self, reader: _Srun) -> None:
        """Receive all that an srun has sent, and detach it if that ends.

        One that never stops sending must not keep the others waiting.
        """
        with suppress(BlockingIOError):
            if not all(self._take(reader) for _ in range(_TAKES_MAX)):
                self._detach(reader)

    def _detach(self, reader: _Srun) -> None:
        number = reader.connection.fileno()
        if number in self._readers:
            outputs = self._outputs.values()
            for output in outputs:
                self._release(output)  # with what this one has shown
            del self._readers[number]
            self._poller.unregister(number)
            reader.connection.close()
            for output in outputs:
                self._release(output)

    def _receive(self, reader: _Srun, frame: Frame) -> None:
        match frame.kind:
            case _ if frame.kind == CREDIT:
                reader.credit += frame.number
            case _ if frame.kind == WRITTEN and len(frame.body) == BYTE_COUNT.size:
                kind, count = BYTE_COUNT.unpack(frame.body)
                output = self._outputs.get((kind, frame.number))
                if output is not None:
                    end = reader.written[output] + count
                    reader.written[output] = min(end, reader.positions[output])
                    if output.log.has_file:  # else the log itself forgets what it cannot hold
                        self._release(output)
            case _ if frame.kind == INPUT and reader.has_input:
                reader.has_input = bool(frame.body)  # another one may give it to a terminal
                self._input.take(frame.body)
            case _ if frame.kind == SIGNAL and frame.number in NUMBERS:
                self._send_signal(frame.number)
            case _ if frame.kind == WINDOW_SIZE and len(frame.body) == SIZE.size:
                self._input.resize(*SIZE.unpack(frame.body))

    def _release(self, output: TaskOutput) -> None:
        """Give up what neither a connected srun nor the next one needs.

        A stopped one must not fill the disk, nor cost the task time: only the first is never too
        late.
        """
        readers = self._readers.values()
        for reader in readers:  # in this order: each has begun where an earlier one was, or before
            if reader.begins[output] <= output.shown:
                output.shown = max(output.shown, reader.written[output])
        first, *others = [reader.written[output] for reader in readers] or [output.shown]
        late = output.log.end - LAG_MAX
        output.log.release(min([output.shown, first, *(one for one in others if one >= late)]))

    def _send(self, reader: _Srun) -> None:
        """Send an srun what it takes now."""
        self._fill(reader)
        try:
            while reader.unsent:
                sent = reader.connection.send(reader.unsent)
                del reader.unsent[:sent]
                self._fill(reader)
        except BlockingIOError:
            pass
        except OSError:
            self._take_all(reader)  # it was killed
            self._detach(reader)
            return
        self._listen_to(reader)

    def _fill(self, reader: _Srun) -> None:
        """Take output from the logs, in turn, as far as credit and memory allow."""
        while reader.waiting and len(reader.unsent) < _UNSENT_MAX:
            output = next(iter(reader.waiting))
            if reader.positions[output] < output.log.end:
                if not reader.credit:
                    return
                self._skip_missed(reader, output)
                position = reader.positions[output]
                data = output.log.read(position, min(_CHUNK, reader.credit))
                reader.credit -= len(data)
                reader.positions[output] += len(data)
                reader.unsent += encode_frame(Frame(output.kind, output.rank, data))
                del reader.waiting[output]
                reader.waiting[output] = None  # the others first
            else:
                del reader.waiting[output]
                if not output.is_open:
                    reader.unsent += encode_frame(Frame(output.kind, output.rank, b""))
        if self._is_finished and not reader.waiting and not reader.is_finished:
            if any(one.is_open or one.held for one in self._outputs.values()):
                return  # more comes when the disk takes it
            reader.is_finished = True
            reader.unsent += encode_frame(Frame(FINISHED, 0, b""))

    def _skip_missed(self, reader: _Srun, output: TaskOutput) -> None:
        """Tell an srun that was late how many bytes it has missed, and go on behind them."""
        count = output.log.start - reader.positions[output]
        if count > 0:
            reader.begins[output] = reader.positions[output] = output.log.start
            body = BYTE_COUNT.pack(output.kind, count)
            reader.unsent += encode_frame(Frame(MISSED, output.rank, body))

    def _tell_taken(self, count: int) -> None:
        """Tell the srun that gives the input that all tasks have taken some of it."""
        for reader in list(self._readers.values()):
            if reader.has_input:
                reader.unsent += encode_frame(Frame(INPUT_TAKEN, count, b""))
                self._send(reader)

    def _broadcast(self, frame: bytes) -> None:
        for reader in list(self._readers.values()):
            reader.unsent += frame
            self._send(reader)

    # ------------------------------------------------------------------ end

    def finish(self) -> None:
        """Read what the tasks have left in their pipes. No process of the step is left."""
        for output in self._outputs.values():
            while output.is_open and not output.held and self._read_output(output):
                pass
            if output.is_open and not output.held:  # a process of another step has it
                self._close_output(output)
        self._is_finished = True

    def drain(self) -> None:
        """Send what is left, until all sruns have everything, or none comes any more.

        The listener of the step daemon goes on to accept sruns meanwhile.
        """
        ends = time.monotonic() + DRAIN_SECONDS
        while self.is_wanted:
            self.send_all()
            now = time.monotonic()
            if self._readers:
                ends = now + DRAIN_SECONDS
            elif now >= ends or not os.path.isdir(self._directory):
                return  # no srun comes any more
            self._poller.wait(_LOOK_MILLISECONDS)
            self.act(time.monotonic())

    def send_all(self) -> None:
        """Send all sruns what they take now."""
        for reader in list(self._readers.values()):
            self._send(reader)

    @property
    def is_wanted(self) -> bool:
        """True if an srun has not got everything, or should connect to learn what none knows."""
        if any(one.unsent or not one.is_finished for one in self._readers.values()):
            return True
        if self._has_srun and not self._was_attached:
            return True
        return any(one.shown < one.log.end or one.held for one in self._outputs.values())


def _exit_frame(rank: int, status: int) -> bytes:
    return encode_frame(Frame(EXITED, rank, STATUS.pack(status)))
