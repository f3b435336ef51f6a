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

from fairbank.bank.rules import Outcome
from fairbank.core.errors import FairbankError
from fairbank.service.gc_tuning import calm_collector
from fairbank.service.ledger import Ledger
from fairbank.service.retry import Deadline, Patience
from fairbank.service.write_queue.protocol import (
    READ_MAX,
    BatchAnswer,
    Frames,
    Wishes,
    WorkerSettings,
    answer_of,
    failure_of,
    framed,
    opening_in,
    requests_in,
)
from fairbank.service.write_queue.queue import Came
from fairbank.service.write_queue.writers import Submission, Windows
from fairbank.store.factory import open_store

_log = logging.getLogger(__name__)


class ServerGone(Exception):
    """The line ended without a word: the server was killed."""


def serve(
    line: socket.socket, prepare: Callable[[WorkerSettings], None], gone: Callable[[], None]
) -> None:
    """Judge what the server hands in, until it says that this was all. `prepare` is called before the store is opened.

    Raises ServerGone; if the windows are open already, `gone` is called in the one that hears it. A killed server takes its counter with
    it: this process is to end at once then, whatever the windows are doing, and what was not committed is not carried out.
    """
    said = bodies(line)
    opening = opening_in(next(said))
    prepare(opening)
    try:
        store = open_store(opening.url, journal=opening.journal)
    except FairbankError as trouble:
        line.sendall(framed(failure_of(trouble)))
        return
    calm_collector()
    line.sendall(framed(None))
    Judging(
        line, Ledger(store, opening.policy, Patience(opening.patience_seconds)), said, gone
    ).until_told()
    store.close()


def bodies(line: socket.socket) -> Iterator[bytes]:
    """What the server says, frame by frame. Raises ServerGone."""
    frames = Frames()
    while data := _received(line):
        yield from frames.arrived(data)
    raise ServerGone


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(READ_MAX)
    except ConnectionError:
        return b""


class Judging(Windows):
    """Windows before `bank` that hear themselves what is `said` at the other end of `line`.

    One of those that are idle reads, and begins with what it has read: so nobody has to be woken for a request that comes alone. Then the
    next reads on, for the line may end while all others are at work.
    """

    def __init__(
        self, line: socket.socket, bank: Ledger, said: Iterator[bytes], gone: Callable[[], None]
    ) -> None:
        self._said, self._gone, self._hearing = said, gone, False
        self._told: Future[None] = Future()
        self._outbox = _Outbox(line, bank.patience)
        super().__init__(bank, after=self._outbox.flush, spare=1)

    def until_told(self) -> None:
        """Judge what comes until the orderly end, then what waits. Raises ServerGone."""
        self._told.result()
        self.close()

    def _wait(self) -> None:
        if self._hearing or self._closed:
            self._changed.wait()
            return
        self._hearing = True
        self._changed.release()
        try:
            submissions = [self._outbox.submission(each) for each in requests_in(next(self._said))]
            if not submissions:
                self._told.set_result(None)
        except Exception as error:  # noqa: BLE001 (it is raised where somebody waits for the end)
            if isinstance(error, ServerGone):
                self._gone()
            submissions = []
            self._told.set_exception(error)
        finally:
            self._changed.acquire()
            self._hearing = False
        if submissions:
            self._queue(submissions)
        else:
            self._closed = True

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        """Each batch leaves in a frame of its own, so that the server can tell how long they are."""
        self._outbox.flush()


class _Outbox:
    """Answers that gather until all of a batch are there."""

    def __init__(self, line: socket.socket, patience: Patience) -> None:
        self._line, self._patience = line, patience
        self._answers: deque[BatchAnswer] = deque()
        self._sending = threading.Lock()

    def submission(self, requests: Wishes) -> Submission:
        """What the server handed in, with the way back."""
        return Submission(
            requests.batch,
            partial(self._put, requests.number),
            Deadline(requests.begun_by, self._patience.ticks),
        )

    def _put(self, number: int, came: Came) -> None:
        if isinstance(came, Exception) and not isinstance(came, FairbankError):
            _log.error("the counter failed", exc_info=came)
        self._answers.append(answer_of(number, came))

    def flush(self) -> None:
        """Send what has gathered, in a window's thread."""
        with self._sending:
            answers = [self._answers.popleft() for _ in range(len(self._answers))]
            if answers:
                with suppress(OSError):  # nobody is there: whoever reads the line hears of it
                    self._line.sendall(framed(answers))
