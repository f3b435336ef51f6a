"""The counter's process: windows that hear what the server says at the other end of a line."""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial

from fairbank.bank.ledger import Outcome
from fairbank.core.errors import Trouble
from fairbank.service.gc_tuning import tune_gc
from fairbank.service.ledger import Deadline, Ledger, RetryPolicy
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
    """The line ended without a word: the server was killed."""


def serve(
    connection: socket.socket,
    prepare: Callable[[WorkerSettings], None],
    on_server_death: Callable[[], None],
) -> None:
    """Judge what the server hands in, until it says that this was all. `prepare` is called before the store is opened.

    Raises ServerGone; if the windows are open already, `gone` is called in the one that hears it. A killed server takes its counter with
    it: this process is to end at once then, whatever the windows are doing, and what was not committed is not carried out.
    """
    said = read_frames(connection)
    opening = decode_settings(next(said))
    prepare(opening)
    try:
        store = open_store(opening.url, journal=opening.journal)
    except Trouble as trouble:
        connection.sendall(frame(encode_error(trouble)))
        return
    tune_gc()
    connection.sendall(frame(None))
    ConnectionWriters(
        connection,
        Ledger(store, opening.policy, RetryPolicy(opening.retry_seconds)),
        said,
        on_server_death,
    ).serve_until_end()
    store.close()


def read_frames(line: socket.socket) -> Iterator[bytes]:
    """What the server says, frame by frame. Raises ServerGone."""
    frames = FrameReader()
    while data := _receive(line):
        yield from frames.feed(data)
    raise ServerDied


def _receive(line: socket.socket) -> bytes:
    try:
        return line.recv(READ_MAX)
    except ConnectionError:
        return b""


class ConnectionWriters(WriterThreads):
    """Windows before `bank` that hear themselves what is `said` at the other end of `line`.

    One of those that are idle reads, and begins with what it has read: so nobody has to be woken for a wish that comes alone. Then the
    next reads on, for the line may end while all others are at work.
    """

    def __init__(
        self, line: socket.socket, bank: Ledger, said: Iterator[bytes], gone: Callable[[], None]
    ) -> None:
        self._frames, self._on_server_death, self._reading = said, gone, False
        self._end: Future[None] = Future()
        self._outbox = _ReplyBuffer(line, bank.retry_policy)
        super().__init__(bank, after_batch=self._outbox.flush, spare_threads=1)

    def serve_until_end(self) -> None:
        """Judge what comes until the orderly end, then what waits. Raises ServerGone."""
        self._end.result()
        self.close()

    def _wait(self) -> None:
        if self._reading or self._closed:
            self._changed.wait()
            return
        self._reading = True
        self._changed.release()
        try:
            submissions = [
                self._outbox.queued_batch(each) for each in decode_batches(next(self._frames))
            ]
            if not submissions:
                self._end.set_result(None)
        except Exception as error:  # noqa: BLE001 (it is raised where somebody waits for the end)
            if isinstance(error, ServerDied):
                self._on_server_death()
            submissions = []
            self._end.set_exception(error)
        finally:
            self._changed.acquire()
            self._reading = False
        if submissions:
            self._enqueue(submissions)
        else:
            self._closed = True

    def _observe(self, outcomes: Sequence[Outcome]) -> None:
        """Each batch leaves in a frame of its own, so that the server can tell how long they are."""
        self._outbox.flush()


class _ReplyBuffer:
    """Answers that gather until all of a batch are there."""

    def __init__(self, line: socket.socket, patience: RetryPolicy) -> None:
        self._line, self._patience = line, patience
        self._answers: deque[BatchReply] = deque()
        self._sending = threading.Lock()

    def queued_batch(self, wishes: RequestBatch) -> QueuedBatch:
        """What the server handed in, with the way back."""
        return QueuedBatch(
            wishes.batch,
            partial(self._put, wishes.number),
            Deadline(wishes.start_deadline, self._patience.monotonic),
        )

    def _put(self, number: int, came: BatchResult) -> None:
        if isinstance(came, Exception) and not isinstance(came, Trouble):
            _log.error("the counter failed", exc_info=came)
        self._answers.append(encode_result(number, came))

    def flush(self) -> None:
        """Send what has gathered, in a window's thread."""
        with self._sending:
            answers = [self._answers.popleft() for _ in range(len(self._answers))]
            if answers:
                with suppress(OSError):  # nobody is there: whoever reads the line hears of it
                    self._line.sendall(frame(answers))
