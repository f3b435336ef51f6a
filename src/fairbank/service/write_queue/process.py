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

from fairbank.bank.requests import SubmittedRequest
from fairbank.bank.rules import Outcome
from fairbank.core.errors import Unavailable
from fairbank.service.ledger import Ledger
from fairbank.service.write_queue.protocol import (
    READ_MAX,
    BatchAnswer,
    Frames,
    Wishes,
    WorkerSettings,
    answers_in,
    came_of,
    encode,
    error_of,
    failure_in,
    framed,
)
from fairbank.service.write_queue.queue import Counter, Notify, demand_one_transaction, say

_END: list[Wishes] = []

_log = logging.getLogger(__name__)


class Apart(Counter):
    """The windows in a process of their own, at the other end of `line`; `bank` is the server's own view of the same books. `ended` waits
    for the end of that process and tells its status."""

    def __init__(
        self, bank: Ledger, line: socket.socket, ended: Callable[[], int], *, room: int = 10_000
    ) -> None:
        super().__init__(bank, room)
        self._line, self._process_ended = line, ended
        self._frames = Frames()
        self._numbers = count()
        self._lock = threading.Lock()  # of what stands below, up to the blank line
        self._askers: dict[int, tuple[int, Notify]] = {}
        self._count = 0
        self._unsaid: list[msgspec.Raw] = []
        self._due = False  # whether somebody will say it
        self._closed = False
        self._ending = False  # whether the process was told that this was all

        self._out = bytearray()  # what the line does not take yet
        self._full = False  # whether somebody waits for it to take more
        self._over = threading.Event()
        self._line.setblocking(False)
        self._own = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._own.run_forever, name="fairbank-counter", daemon=True
        )
        self._thread.start()
        self._loop: AbstractEventLoop = self._own
        self._ident: int | None = (
            self._thread.ident
        )  # of the thread whose loop has the line; None while it changes hands
        self._own.call_soon_threadsafe(self._watch_line)

    @property
    def waiting(self) -> int:
        return self._count

    def submit(self, batch: Sequence[SubmittedRequest], notify: Notify) -> None:
        """As of every counter."""
        demand_one_transaction(batch)
        number = next(self._numbers)
        said = msgspec.Raw(encode(Wishes(number, self.bank.patience.from_now().at, batch)))
        with self._lock:
            self._admit(batch, self._count, closed=self._closed)
            self._askers[number] = len(batch), notify
            self._count += len(batch)
            self._unsaid.append(said)
            self._soon()

    def close(self) -> None:
        """As of every counter; the process has ended then. Not in an event loop."""
        with self._lock:
            if self._own.is_closed():
                return
            self._closed = True
            self._soon()
        self._over.wait()
        self._process_ended()
        self._own.call_soon_threadsafe(self._own.stop)
        self._thread.join()
        self._own.close()
        self._line.close()

    @contextmanager
    def in_loop(self, loop: AbstractEventLoop) -> Iterator[None]:
        """While the block lasts the loop that runs in this thread has the line."""
        gone = threading.Event()
        self._own.call_soon_threadsafe(self._leave_line, gone)
        gone.wait()
        self._take_line(loop)
        try:
            yield
        finally:
            self._leave_line(threading.Event())
            self._own.call_soon_threadsafe(self._take_line, self._own)

    def _take_line(self, loop: AbstractEventLoop) -> None:
        """In the thread of the loop that has the line from now on."""
        with self._lock:
            self._loop, self._ident = loop, threading.get_ident()
            self._due = False
            self._soon()
        self._watch_line()

    def _watch_line(self) -> None:
        if not self._over.is_set():
            self._loop.add_reader(self._line, self._read)

    def _leave_line(self, gone: threading.Event) -> None:
        """In the thread of the loop that has the line. Until another takes it, all that is to be said waits."""
        with self._lock:
            self._due, self._ident = True, None
        self._unwatch()
        gone.set()

    def _unwatch(self) -> None:
        self._loop.remove_reader(self._line)
        self._loop.remove_writer(self._line)
        self._full = False

    def _soon(self) -> None:
        """Let the loop say what gathers until it comes to it. Under the lock."""
        if self._due:
            return
        self._due = True
        if threading.get_ident() == self._ident:
            self._loop.call_soon(self._say)
        else:
            self._loop.call_soon_threadsafe(self._say)

    def _say(self) -> None:
        with self._lock:
            if threading.get_ident() != self._ident:  # this loop has left the line meanwhile
                return
            self._due = False
            said, self._unsaid = self._unsaid, []
            ending, self._ending = self._ending, self._closed
        if said:
            self._out += framed(said)
        if self._ending and not ending:
            self._out += framed(_END)
        self._write()

    def _write(self) -> None:
        try:
            sent = self._line.send(self._out) if self._out else 0
        except BlockingIOError:
            sent = 0
        except OSError:  # nobody is there any more: reading tells why
            sent = len(self._out)
        del self._out[:sent]
        if self._out and not self._full:
            self._loop.add_writer(self._line, self._write)
        elif self._full and not self._out:
            self._loop.remove_writer(self._line)
        self._full = bool(self._out)

    def _read(self) -> None:
        try:
            data = self._line.recv(READ_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._ended()
        for body in self._frames.arrived(data):
            self._hand_out(answers_in(body))

    def _hand_out(self, answers: list[BatchAnswer]) -> None:
        with self._lock:
            told = [self._askers.pop(each.number) for each in answers]
            self._count -= sum(size for size, _ in told)
        judged: list[Outcome] = []
        for each, (_, notify) in zip(answers, told, strict=True):
            came = came_of(each)
            if not isinstance(came, Exception):
                judged += came
            say(notify, came)
        if judged:
            self._tell(judged)

    def _ended(self) -> None:
        """The line ended: as it should once we closed it, or else the process died."""
        self._unwatch()
        with self._lock:
            orderly = self._closed and not self._askers
            self._closed = True
            askers, self._askers, self._count = self._askers, {}, 0
        if not orderly:
            status = self._process_ended()  # it ends, or has ended: only so the line does
            self.failure = Unavailable(
                f"the counter's process ended (status {status}), and the server with it",
                remedy="see the log for what it said before; start the server again",
            )
            _log.critical("%s; %d submissions were under way", self.failure.message, len(askers))
        for _, notify in askers.values():
            say(notify, _unknown())
        self._over.set()


def _unknown() -> Unavailable:
    return Unavailable(
        "the counter's process ended, and whether this was carried out is not known",
        remedy="ask again with the same key: it counts once; without a key look into the statement first",
    )


START_SECONDS = 60.0  # it imports, and opens the store, which waits for the database


def started(
    command: Sequence[str], opening: WorkerSettings
) -> tuple[socket.socket, Callable[[], int]]:
    """Run `command`, with the line as its standard input, and wait until it has opened the bank. Returns the line, and what
    waits for the end of the process and tells its status.

    Raises what it could not open the bank for; Unavailable when it ended without a word, or says nothing for START_SECONDS.
    """
    line, theirs = socket.socketpair()
    try:
        with theirs:
            popen = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL)
    except BaseException:
        line.close()
        raise
    try:
        _greet(line, opening)
    except BaseException:
        line.close()
        popen.kill()
        popen.wait()
        raise
    return line, popen.wait


def _greet(line: socket.socket, opening: WorkerSettings) -> None:
    line.settimeout(START_SECONDS)
    frames = Frames()
    with suppress(OSError):
        line.sendall(framed(opening))
        while data := line.recv(READ_MAX):
            for body in frames.arrived(data):
                failure = failure_in(body)
                if failure is not None:
                    raise error_of(failure)
                return
    raise Unavailable(
        "the counter's process did not start",
        remedy='see what it said above; or set counter = "threads" in [server]',
    )
