"""Process of the write queue: writer threads that read batches from a socket of the server."""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from fairbank.bank.rules import Outcome
from fairbank.core.errors import FairbankError
from fairbank.service.ledger import Deadline, Ledger, RetryPolicy
from fairbank.service.ops.garbage_collector import tune_garbage_collector
from fairbank.service.write_queue.protocol import (
    READ_MAX,
    BatchReply,
    FrameReader,
    RequestBatch,
    WorkerSettings,
    decode_batches,
    decode_settings,
    encode_error,
    encode_result,
    frame,
)
from fairbank.service.write_queue.queue import BatchResult
from fairbank.service.write_queue.writers import QueuedBatch, WriterThreads
from fairbank.store.factory import open_store

_log = logging.getLogger(__name__)


class ServerDied(Exception):
    """End of the connection without the end message: the server was killed."""


def serve(
    connection: socket.socket,
    prepare: Callable[[WorkerSettings], None],
    on_server_death: Callable[[], None],
) -> None:
    """Apply the batches of the server until it sends the end message.

    Args:
        connection: socket to the server.
        prepare: called with the settings before the store is opened.
        on_server_death: called in a writer thread when the server dies while the store is open. It
            must end this process at once: a killed server takes its queue with it, and what was
            not committed is not applied.

    Raises:
        ServerDied: the connection ended without the end message.
    """
    frames = read_frames(connection)
    settings = decode_settings(next(frames))
    prepare(settings)
    try:
        store = open_store(settings.url, journal=settings.journal)
    except FairbankError as error:
        connection.sendall(frame(encode_error(error)))
        return
    tune_garbage_collector()
    connection.sendall(frame(None))
    bank = Ledger(store, settings.policy, RetryPolicy(settings.retry_seconds))
    ConnectionWriters(connection, bank, frames, on_server_death).serve_until_end()
    store.close()


def read_frames(connection: socket.socket) -> Iterator[bytes]:
    """Yield the bodies of the server's frames. Raises ServerDied at the end of the connection."""
    reader = FrameReader()
    while data := _receive(connection):
        yield from reader.feed(data)
    raise ServerDied


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(READ_MAX)
    except ConnectionError:
        return b""


class ConnectionWriters(WriterThreads):
    """Writer threads that read the server's connection themselves.

    An idle thread reads, and applies what it has read: no other thread has to be woken for a
    single batch. The next idle thread goes on reading.

    Invariant: at most one thread reads (`_reading`), outside the lock. One thread more than the
    store's writers (`spare_threads`) keeps reading while all of these work, so that the end of the
    connection is noticed at once. `_end` is set once: by the end message, or with the error.
    """

    def __init__(
        self,
        connection: socket.socket,
        bank: Ledger,
        frames: Iterator[bytes],
        on_server_death: Callable[[], None],
    ) -> None:
        self._frames, self._on_server_death, self._reading = frames, on_server_death, False
        self._end: Future[None] = Future()
        self._replies = _ReplyBuffer(connection, bank.retry_policy)
        super().__init__(bank, after_batch=self._replies.flush, spare_threads=1)

    def serve_until_end(self) -> None:
        """Apply batches until the end message, then what still waits. Raises ServerDied."""
        self._end.result()
        self.close()

    def _wait(self) -> None:
        if self._reading or self._closed:
            self._changed.wait()
            return
        self._reading = True
        self._changed.release()  # reading blocks; the other threads go on meanwhile
        try:
            batches = [
                self._replies.queued_batch(batch) for batch in decode_batches(next(self._frames))
            ]
            if not batches:
                self._end.set_result(None)
        except Exception as error:  # noqa: BLE001 (serve_until_end raises it)
            if isinstance(error, ServerDied):
                self._on_server_death()
            batches = []
            self._end.set_exception(error)
        finally:
            self._changed.acquire()
            self._reading = False
        if batches:
            self._enqueue(batches)
        else:
            self._closed = True

    def _observe(self, outcomes: Sequence[Outcome]) -> None:
        """Send each transaction in its own frame, so that the server can observe its length."""
        self._replies.flush()


class _ReplyBuffer:
    """Replies that wait until all batches of a transaction are answered."""

    def __init__(self, connection: socket.socket, retry_policy: RetryPolicy) -> None:
        self._connection, self._retry_policy = connection, retry_policy
        self._replies: deque[BatchReply] = deque()
        self._sending = threading.Lock()

    def queued_batch(self, request: RequestBatch) -> QueuedBatch:
        """Return a batch of the server whose result goes into this buffer."""
        return QueuedBatch(
            request.batch,
            partial(self._put, request.number),
            Deadline(request.start_deadline, self._retry_policy.monotonic),
        )

    def _put(self, number: int, result: BatchResult) -> None:
        if isinstance(result, Exception) and not isinstance(result, FairbankError):
            _log.error("the write queue failed", exc_info=result)
        self._replies.append(encode_result(number, result))

    def flush(self) -> None:
        """Send all replies in one frame. Called in a writer thread."""
        with self._sending:
            replies = [self._replies.popleft() for _ in range(len(self._replies))]
            if replies:
                with suppress(OSError):  # the server is gone, and the reading thread notices it
                    self._connection.sendall(frame(replies))
