"""Write queue in a process of its own, seen from the server.

Python threads share one processor (the global interpreter lock), so an event loop and writer
threads in one process would slow each other down (docs/decisions/0020).

All batches that gather while the event loop handles one round of events leave in one frame, and
the replies of a transaction come back in one. The event loop reads and writes the socket itself,
so no other thread has to be woken. Before the server's loop runs, and after it, a loop in a thread
of the queue has the socket.

If the process dies, the result of every open batch is Unavailable: it is unknown if it was
applied. `failure` makes the server end, as if the queue had been its own thread; the supervisor
(systemd) starts both again.
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

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Unavailable
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

START_SECONDS = 60.0
"""Time limit of a start: imports, then opening the store, which waits for the database."""

_END: list[RequestBatch] = []

_log = logging.getLogger(__name__)


class ProcessWriteQueue(WriteQueue):
    """Write queue in a process at the other end of a socket.

    Invariant: exactly one event loop has the socket, `_loop`. Only its thread, `_loop_thread`,
    reads and writes the socket and touches `_send_buffer`, `_frames` and `_writer_registered`.
    `_loop_thread` is None while the socket changes hands (`in_loop`). During that time
    `_flush_scheduled` is True, so that no thread schedules a flush; the next loop flushes first.

    `_lock` protects what any thread may change: `_callbacks` (by batch number, with the number of
    requests), `_count` (their sum), `_unsent` (encoded batches not yet in `_send_buffer`),
    `_flush_scheduled`, `_closed` and `_end_sent`. A batch is in `_callbacks` from `submit` until
    its callback has its result. `_finished` is set once, at the end of the connection.
    """

    def __init__(
        self,
        bank: Ledger,
        connection: socket.socket,
        wait_for_exit: Callable[[], int],
        *,
        waiting_max: int = 10_000,
    ) -> None:
        """Start the queue's own event loop, which has the socket at first.

        Args:
            bank: the ledger as the server sees it, on the same store.
            connection: socket to the process.
            wait_for_exit: waits for the end of the process and returns its exit status.
            waiting_max: the most requests that may wait or be in progress.
        """
        super().__init__(bank, waiting_max)
        self._connection, self._wait_for_exit = connection, wait_for_exit
        self._frames = FrameReader()
        self._numbers = count()
        self._lock = threading.Lock()
        self._callbacks: dict[int, tuple[int, BatchCallback]] = {}
        self._count = 0
        self._unsent: list[msgspec.Raw] = []
        self._flush_scheduled = False
        self._closed = False
        self._end_sent = False

        self._send_buffer = bytearray()  # bytes that the socket does not accept yet
        self._writer_registered = False
        self._finished = threading.Event()
        self._connection.setblocking(False)
        self._own_loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._own_loop.run_forever, name="fairbank-writer", daemon=True
        )
        self._thread.start()
        self._loop: AbstractEventLoop = self._own_loop
        self._loop_thread: int | None = self._thread.ident
        self._own_loop.call_soon_threadsafe(self._watch)

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[SubmittedRequest], notify: BatchCallback) -> None:
        check_batch_size(batch)
        number = next(self._numbers)
        deadline = self.bank.retry_policy.new_deadline()
        # Encode here, in the client's thread and outside the lock: it takes most of the time.
        message = msgspec.Raw(encode(RequestBatch(number, deadline.at, batch)))
        with self._lock:
            self._check_waiting_max(batch, self._count, closed=self._closed)
            self._callbacks[number] = len(batch), notify
            self._count += len(batch)
            self._unsent.append(message)
            self._schedule_flush()

    def close(self) -> None:
        """Answer what waits, then stop and wait for the end of the process.

        Not for use in an event loop.
        """
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
        """Give the socket to the running event loop of this thread while the block lasts."""
        detached = threading.Event()
        self._own_loop.call_soon_threadsafe(self._detach, detached)
        detached.wait()
        self._attach(loop)
        try:
            yield
        finally:
            self._detach(threading.Event())
            self._own_loop.call_soon_threadsafe(self._attach, self._own_loop)

    def _attach(self, loop: AbstractEventLoop) -> None:
        """Give the socket to a loop. Runs in the thread of that loop."""
        with self._lock:
            self._loop, self._loop_thread = loop, threading.get_ident()
            self._flush_scheduled = False
            self._schedule_flush()
        self._watch()

    def _watch(self) -> None:
        if not self._finished.is_set():
            self._loop.add_reader(self._connection, self._read)

    def _detach(self, detached: threading.Event) -> None:
        """Take the socket from its loop. Runs in the thread of that loop."""
        with self._lock:
            self._flush_scheduled, self._loop_thread = True, None
        self._unwatch()
        detached.set()

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)
        self._writer_registered = False

    def _schedule_flush(self) -> None:
        """Let the loop send later what gathers until then. The caller holds the lock."""
        if self._flush_scheduled:
            return
        self._flush_scheduled = True
        # Within the loop's own thread call_soon is enough: it wakes no one and costs no system
        # call. It runs after the events of this round, so that their batches share one frame.
        if threading.get_ident() == self._loop_thread:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            # The socket has changed hands since this call was scheduled: the new loop flushes.
            if threading.get_ident() != self._loop_thread:
                return
            self._flush_scheduled = False
            messages, self._unsent = self._unsent, []
            end_was_sent, self._end_sent = self._end_sent, self._closed
        if messages:
            self._send_buffer += frame(messages)
        # The end message follows the last batch: `submit` adds none once `_closed` is set.
        if self._end_sent and not end_was_sent:
            self._send_buffer += frame(_END)
        self._write()

    def _write(self) -> None:
        try:
            sent = self._connection.send(self._send_buffer) if self._send_buffer else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # the process is gone; `_read` notices it and reports the reason
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

    def _deliver(self, replies: list[BatchReply]) -> None:
        """Pass the results of a transaction to their callbacks, then to the observer."""
        with self._lock:
            callbacks = [self._callbacks.pop(reply.number) for reply in replies]
            self._count -= sum(size for size, _ in callbacks)
        outcomes: list[Outcome] = []
        for reply, (_, notify) in zip(replies, callbacks, strict=True):
            result = decode_result(reply)
            if not isinstance(result, Exception):
                outcomes += result
            call_safely(notify, result)
        if outcomes:
            self._observe(outcomes)

    def _handle_eof(self) -> None:
        """End the queue: after the end message as intended, else because the process died."""
        self._unwatch()
        with self._lock:
            intended = self._closed and not self._callbacks
            self._closed = True
            callbacks, self._callbacks, self._count = self._callbacks, {}, 0
        if not intended:
            # This does not block for long: the connection ends only with the process.
            status = self._wait_for_exit()
            self.failure = Unavailable(
                f"the write queue process ended (status {status}), and the server with it",
                remedy="see the log for what it said before; start the server again",
            )
            _log.critical("%s; %d batches were in progress", self.failure.message, len(callbacks))
        for _, notify in callbacks.values():
            call_safely(notify, _outcome_unknown())
        self._finished.set()


def _outcome_unknown() -> Unavailable:
    return Unavailable(
        "the write queue process ended, and whether this was carried out is not known",
        remedy=(
            "send it again with the same key: it counts once; without a key check the statement"
            " first"
        ),
    )


def start_process(
    command: Sequence[str], settings: WorkerSettings
) -> tuple[socket.socket, Callable[[], int]]:
    """Start the process of a write queue and wait until it has opened the store.

    Args:
        command: the process; its standard input is its end of the socket.
        settings: the store to open, and how.

    Returns:
        Our end of the socket, and a function that waits for the exit status of the process.

    Raises:
        FairbankError: the store could not be opened, with the reason.
        Unavailable: the process ended without a reason, or did not answer for START_SECONDS.
    """
    connection, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    except BaseException:
        connection.close()
        raise
    try:
        _wait_until_ready(connection, settings)
    except BaseException:
        connection.close()
        process.kill()
        process.wait()
        raise
    return connection, process.wait


def _wait_until_ready(connection: socket.socket, settings: WorkerSettings) -> None:
    connection.settimeout(START_SECONDS)
    reader = FrameReader()
    with suppress(OSError):
        connection.sendall(frame(settings))
        while data := connection.recv(READ_MAX):
            for body in reader.feed(data):
                failure = decode_failure(body)
                if failure is not None:
                    raise decode_error(failure)
                return
    raise Unavailable(
        "the write queue process did not start",
        remedy='see what it said above; or set write_queue = "threads" in [server]',
    )
