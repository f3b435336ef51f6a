"""The counter in a process of its own, as the server sees it: a line to it, and who waits for which answer.

In one process the threads of Python take turns. So the event loop and the windows would share one processor, however many there are.

All that gathers while the event loop works through what has arrived leaves in one frame, and the answers of a batch come back in one:
the loop reads and writes the line itself, and no thread of the server has to be woken. Before that loop runs, and after it, a loop in a
thread of our own does the same.

When the process dies, whoever waits is told that nobody knows whether it was carried out, and the server ends (`failure`): as if it had
been its own thread. Whoever looks after the server starts it again, and it starts with a new one.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count

import msgspec

from fairbank.bank.ledger import Outcome
from fairbank.bank.wish import Asked
from fairbank.core.errors import Unreachable
from fairbank.service.ledger import Ledger
from fairbank.service.write_queue.protocol import (
    READ_MAX,
    BatchReply,
    FrameReader,
    RequestBatch,
    WorkerSettings,
    decode_error,
    decode_failure,
    decode_replies,
    decode_result,
    encode,
    frame,
)
from fairbank.service.write_queue.queue import (
    BatchCallback,
    WriteQueue,
    call_safely,
    check_batch_size,
)

_END: list[RequestBatch] = []

_log = logging.getLogger(__name__)


class ProcessWriteQueue(WriteQueue):
    """The windows in a process of their own, at the other end of `line`; `bank` is the server's own view of the same books. `ended` waits
    for the end of that process and tells its status."""

    def __init__(
        self,
        bank: Ledger,
        connection: socket.socket,
        wait_for_exit: Callable[[], int],
        *,
        capacity: int = 10_000,
    ) -> None:
        super().__init__(bank, capacity)
        self._connection, self._wait_for_exit = connection, wait_for_exit
        self._frames = FrameReader()
        self._numbers = count()
        self._lock = threading.Lock()  # of what stands below, up to the blank line
        self._callbacks: dict[int, tuple[int, BatchCallback]] = {}
        self._count = 0
        self._unsent: list[msgspec.Raw] = []
        self._flush_scheduled = False  # whether somebody will say it
        self._closed = False
        self._end_sent = False  # whether the process was told that this was all

        self._send_buffer = bytearray()  # what the line does not take yet
        self._writer_registered = False  # whether somebody waits for it to take more
        self._finished = threading.Event()
        self._connection.setblocking(False)
        self._own_loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._own_loop.run_forever, name="fairbank-counter", daemon=True
        )
        self._thread.start()
        self._loop: AbstractEventLoop = self._own_loop
        self._loop_thread: int | None = (
            self._thread.ident
        )  # of the thread whose loop has the line; None while it changes hands
        self._own_loop.call_soon_threadsafe(self._watch)

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[Asked], notify: BatchCallback) -> None:
        """As of every counter."""
        check_batch_size(batch)
        number = next(self._numbers)
        said = msgspec.Raw(
            encode(RequestBatch(number, self.bank.retry_policy.new_deadline().at, batch))
        )
        with self._lock:
            self._check_capacity(batch, self._count, closed=self._closed)
            self._callbacks[number] = len(batch), notify
            self._count += len(batch)
            self._unsent.append(said)
            self._schedule_flush()

    def close(self) -> None:
        """As of every counter; the process has ended then. Not in an event loop."""
        with self._lock:
            if self._own_loop.is_closed():
                return
            self._closed = True
            self._schedule_flush()
        self._finished.wait()
        self._wait_for_exit()
        self._own_loop.call_soon_threadsafe(self._own_loop.stop)
        self._thread.join()
        self._own_loop.close()
        self._connection.close()

    @contextmanager
    def in_loop(self, loop: AbstractEventLoop) -> Iterator[None]:
        """While the block lasts the loop that runs in this thread has the line."""
        gone = threading.Event()
        self._own_loop.call_soon_threadsafe(self._detach, gone)
        gone.wait()
        self._attach(loop)
        try:
            yield
        finally:
            self._detach(threading.Event())
            self._own_loop.call_soon_threadsafe(self._attach, self._own_loop)

    def _attach(self, loop: AbstractEventLoop) -> None:
        """In the thread of the loop that has the line from now on."""
        with self._lock:
            self._loop, self._loop_thread = loop, threading.get_ident()
            self._flush_scheduled = False
            self._schedule_flush()
        self._watch()

    def _watch(self) -> None:
        if not self._finished.is_set():
            self._loop.add_reader(self._connection, self._read)

    def _detach(self, gone: threading.Event) -> None:
        """In the thread of the loop that has the line. Until another takes it, all that is to be said waits."""
        with self._lock:
            self._flush_scheduled, self._loop_thread = True, None
        self._unwatch()
        gone.set()

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._writer_registered = False

    def _schedule_flush(self) -> None:
        """Let the loop say what gathers until it comes to it. Under the lock."""
        if self._flush_scheduled:
            return
        self._flush_scheduled = True
        if threading.get_ident() == self._loop_thread:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            if threading.get_ident() != self._loop_thread:  # this loop has left the line meanwhile
                return
            self._flush_scheduled = False
            said, self._unsent = self._unsent, []
            ending, self._end_sent = self._end_sent, self._closed
        if said:
            self._send_buffer += frame(said)
        if self._end_sent and not ending:
            self._send_buffer += frame(_END)
        self._write()

    def _write(self) -> None:
        try:
            sent = self._connection.send(self._send_buffer) if self._send_buffer else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # nobody is there any more: reading tells why
            sent = len(self._send_buffer)
        del self._send_buffer[:sent]
        if self._send_buffer and not self._writer_registered:
            self._loop.add_writer(self._connection, self._write)
        elif self._writer_registered and not self._send_buffer:
            self._loop.remove_writer(self._connection)
        self._writer_registered = bool(self._send_buffer)

    def _read(self) -> None:
        try:
            data = self._connection.recv(READ_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._handle_eof()
        for body in self._frames.feed(data):
            self._deliver(decode_replies(body))

    def _deliver(self, answers: list[BatchReply]) -> None:
        with self._lock:
            told = [self._callbacks.pop(each.number) for each in answers]
            self._count -= sum(size for size, _ in told)
        judged: list[Outcome] = []
        for each, (_, notify) in zip(answers, told, strict=True):
            came = decode_result(each)
            if not isinstance(came, Exception):
                judged += came
            call_safely(notify, came)
        if judged:
            self._observe(judged)

    def _handle_eof(self) -> None:
        """The line ended: as it should once we closed it, or else the process died."""
        self._unwatch()
        with self._lock:
            orderly = self._closed and not self._callbacks
            self._closed = True
            askers, self._callbacks, self._count = self._callbacks, {}, 0
        if not orderly:
            status = self._wait_for_exit()  # it ends, or has ended: only so the line does
            self.failure = Unreachable(
                f"the counter's process ended (status {status}), and the server with it",
                remedy="see the log for what it said before; start the server again",
            )
            _log.critical("%s; %d submissions were under way", self.failure.message, len(askers))
        for _, notify in askers.values():
            call_safely(notify, _outcome_unknown())
        self._finished.set()


def _outcome_unknown() -> Unreachable:
    return Unreachable(
        "the counter's process ended, and whether this was carried out is not known",
        remedy="ask again with the same key: it counts once; without a key look into the statement first",
    )


START_SECONDS = 60.0  # it imports, and opens the store, which waits for the database


def start_process(
    command: Sequence[str], settings: WorkerSettings
) -> tuple[socket.socket, Callable[[], int]]:
    """Run `command`, with the line as its standard input, and wait until it has opened the bank. Returns the line, and what
    waits for the end of the process and tells its status.

    Raises what it could not open the bank for; Unreachable when it ended without a word, or says nothing for START_SECONDS.
    """
    line, theirs = socket.socketpair()
    try:
        with theirs:
            popen = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    except BaseException:
        line.close()
        raise
    try:
        _wait_until_ready(line, settings)
    except BaseException:
        line.close()
        popen.kill()
        popen.wait()
        raise
    return line, popen.wait


def _wait_until_ready(line: socket.socket, opening: WorkerSettings) -> None:
    line.settimeout(START_SECONDS)
    frames = FrameReader()
    with suppress(OSError):
        line.sendall(frame(opening))
        while data := line.recv(READ_MAX):
            for body in frames.feed(data):
                failure = decode_failure(body)
                if failure is not None:
                    raise decode_error(failure)
                return
    raise Unreachable(
        "the counter's process did not start",
        remedy='see what it said above; or set counter = "threads" in [server]',
    )
